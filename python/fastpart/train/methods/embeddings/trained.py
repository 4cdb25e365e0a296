"""The result of learned rows of vertices and relations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
import numpy.typing as npt
import torch

from .... import _core
from ....core import parameters
from ....core.calls import called_well
from ....core.options import RunOptions
from ....core.parameters import shown
from ....errors import ParameterError
from ....partitions.partition import PartitionSource
from ....partitions.seeds import vertex_ids
from ...method_options import DecoderName
from ...options import Predicted
from ...runs.summary import test_of
from ...runs.trained import TrainedModel, kept_rows
from ..links.dataset import ENDS
from ..links.decoders import RelationNetwork, relation_network
from .dataset import FactDataset

End = Literal["source", "target"]

_BLOCK = 1 << 12
"""Pairs at a time."""

_LOGITS = 1 << 22
"""Logits at a time, about."""

Ids = npt.NDArray[np.int64]
Float = npt.NDArray[np.float32]


@dataclass(frozen=True)
class TrainedEmbeddings(TrainedModel):
    """Rows of vertices and of relations. It has all of :class:`TrainedModel`, but its scores are those of links.

    Attributes
    ----------
    history : polars.DataFrame
        As that of :class:`TrainedModel`, with ``val_filtered_mrr`` and ``val_mrr``.
    summary : dict
        As that of :class:`TrainedModel`, with ``val_mrr``, ``val_hits@1``, ``val_hits@3``, ``val_hits@10``, the same
        filtered, as ``val_filtered_mrr``, and all of these of ``test``.
    decoder : str
        The decoder.
    reciprocal : bool
        Whether relations have rows of their own to predict sources with.
    num_relations : int
        Number of relations.
    embeddings : numpy.ndarray or None
        float32, of shape (n, width): the row of each vertex, learned or from the encoder with all neighbours, which is
        also in ``embeddings.npy`` in the output folder. It is 0 for types of vertices that no relation leads from or
        to. None if the training has not ended.
    """

    decoder: DecoderName = "distmult"
    reciprocal: bool = False
    num_relations: int = 1
    embeddings: Float | None = None

    @classmethod
    def _of_training(cls, trained: TrainedModel, noted: Mapping[str, Any], embeddings: Float | None) -> Self:
        """Return the result of a training with these parameters of the method."""
        names = {
            "decoder": noted["decoder"],
            "reciprocal": noted["reciprocal"],
            "num_relations": noted["relations"],
        }
        return cls(**vars(trained), **names, embeddings=embeddings)

    _predicted: ClassVar[tuple[Predicted, ...]] = ("embeddings",)

    def network(self) -> RelationNetwork:
        """Return the network with the weights of the best epoch, in evaluation mode.

        ``decoder.relations`` are the rows of the relations, in the order of ``graph.relations``. ``encoder`` is None if
        rows of vertices were learned.
        """
        network = relation_network(self.decoder, self.num_relations, self.reciprocal)(self.task, self.options)
        network.load_state_dict(self.weights)
        return network.eval()

    def _outputs(
        self,
        source: PartitionSource,
        what: Predicted,
        target: Path | None,
        run: RunOptions,
        vertices: Any = None,
    ) -> npt.NDArray[Any]:
        rows = self._rows(FactDataset(source))
        if vertices is not None:
            vertex_ids(vertices, len(rows))  # refuses what are no ids
            rows = rows[np.asarray(vertices)]
        if target is not None:
            _core.write_npy(target, np.ascontiguousarray(rows), run)
        return rows

    @called_well
    def scores(self, source: PartitionSource, pairs: npt.ArrayLike, relation: str | None = None) -> Float:
        """Return the logit of each pair of vertices to be linked by a relation.

        Parameters
        ----------
        source : path
            As for :meth:`.TrainedModel.predict`.
        pairs : array
            Ids of sources and targets, of shape (pairs, 2).
        relation : str, optional
            The name of the relation. A graph without types has none.

        Returns
        -------
        numpy.ndarray
            float32, of shape (pairs,). Only their order means something, unless the objective was ``"binary"``. Then
            the probability is the sigmoid of the logit and ``network().decoder.offset`` together.

        Raises
        ------
        ParameterError
            As for :meth:`.TrainedModel.predict`, ids that are not those of vertices, or an unknown relation.
        """
        dataset = FactDataset(source)
        rows, number, network = self._rows(dataset), dataset.relation(relation), self.network().decoder
        ids = np.asarray(pairs)
        if ids.ndim != 2 or ids.shape[1] != 2 or (ids.size and ids.dtype.kind not in "iu"):
            raise ParameterError(
                f"pairs: expected ids of shape (pairs, 2), got {ids.dtype} of shape {ids.shape}"
            )
        if ids.size and not 0 <= ids.min() <= ids.max() < len(rows):
            raise ParameterError(f"pairs: ids must be from 0 to {len(rows) - 1}")
        found = [np.empty(0, np.float32)]
        with torch.no_grad():
            for start in range(0, len(ids), _BLOCK):
                sources, targets = (
                    torch.from_numpy(rows[ends]) for ends in ids[start : start + _BLOCK].astype(np.int64).T
                )
                moved = network.moved(sources, torch.full((len(sources),), number), False)
                found.append(network(moved, targets).float().numpy())
        return np.concatenate(found)

    @called_well
    def top(
        self,
        source: PartitionSource,
        vertices: npt.ArrayLike,
        relation: str | None = None,
        *,
        k: int = 10,
        end: End = "target",
    ) -> tuple[Ids, Float]:
        """Return the likeliest ends of edges of a relation at some vertices, among all of the type.

        Known edges are among them.

        Parameters
        ----------
        source : path
            As for :meth:`.TrainedModel.predict`.
        vertices : array
            Ids of the other ends.
        relation : str, optional
            The name of the relation. A graph without types has none.
        k : int
            Number of ends for each vertex, at most all of the type.
        end : {"target", "source"}
            Which ends are wanted.

        Returns
        -------
        ids : numpy.ndarray
            int64, of shape (vertices, k): the ends, the likeliest first. Of equal ones the smaller id comes first, and
            those whose logit is NaN come last.
        logits : numpy.ndarray
            float32, of shape (vertices, k).

        Raises
        ------
        ParameterError
            As for :meth:`scores`.
        """
        dataset = FactDataset(source)
        rows, number, network = self._rows(dataset), dataset.relation(relation), self.network().decoder
        side = ENDS.index(parameters.choice("end", end, get_args(End)))
        first, last = dataset.ends(side)[number]
        k = min(parameters.integer("k", k, 1, 2**31 - 1), last - first)
        anchors = np.asarray(vertices)
        vertex_ids(np.unique(anchors), len(rows))  # refuses what are no ids
        candidates, pieces = torch.from_numpy(np.array(rows[first:last])), []
        step = max(1, _LOGITS // max(last - first, 1))
        with torch.no_grad():
            for start in range(0, len(anchors), step):
                some = torch.from_numpy(rows[anchors[start : start + step]])
                moved = network.moved(some, torch.full((len(some),), number), side == 0)
                found = network.against(moved, candidates).float()
                order = found.masked_fill(found.isnan(), -torch.inf)  # a sort takes NaN for the largest
                places = order.sort(dim=1, descending=True, stable=True).indices[:, :k]
                pieces.append((places.numpy() + first, found.gather(1, places).numpy()))
        empty = np.empty((0, k), np.int64), np.empty((0, k), np.float32)
        ids, logits = (np.concatenate(each) for each in zip(empty, *pieces, strict=True))
        return ids, logits

    def _rows(self, dataset: FactDataset) -> Float:
        """Return the learned rows. Refuse a directory of other vertices or relations."""
        if self.embeddings is None:
            raise ParameterError(
                "the learned rows are written when the training ends, which it has not yet. Go on with resume()"
            )
        n, relations = len(dataset.partition), dataset.num_relations
        if (n, relations) != (len(self.embeddings), self.num_relations):
            raise ParameterError(
                f"source: {shown(dataset.path)} has {n} vertices and {relations} relations, but there are learned rows "
                f"of {len(self.embeddings)} and {self.num_relations}"
            )
        return self.embeddings

    def __repr__(self) -> str:
        summary = self.summary
        return (
            f"<TrainedEmbeddings: {summary['epochs']} epochs, the best {summary['best_epoch']}, "
            f"{test_of(summary, 'filtered_mrr')}>"
        )


def opened(trained: TrainedModel, noted: Mapping[str, Any]) -> TrainedEmbeddings:
    """Return the result of a training that was kept."""
    return TrainedEmbeddings._of_training(trained, noted, kept_rows(trained))
