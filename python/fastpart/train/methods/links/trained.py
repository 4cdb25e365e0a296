"""The result of link prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from ....core.calls import called_well
from ....core.options import RunOptions
from ....core.parameters import shown
from ....errors import ParameterError
from ....partitions.partition import PartitionSource
from ....partitions.types import ONLY_RELATION, EdgeKey, of_type, range_of_type
from ...inference.inference import LearnedPart
from ...memory import evaluation, fitting, left_by
from ...method_options import PairDecoderName
from ...models.categories import match_categories
from ...models.scores import TypedTask
from ...options import Predicted
from ...runs.predicting import (
    Chosen,
    OutputRows,
    learned_of,
    refuse_other_types,
    reported,
    result_need,
    scratch,
)
from ...runs.summary import test_of
from ...runs.trained import TrainedModel, kept_rows
from .dataset import ENDS, LinkDataset
from .decoders import LinkNetwork, network_with
from .scoring import Encodings

_BLOCK = 1 << 16
"""Pairs at a time."""


@dataclass(frozen=True)
class TrainedLinks(TrainedModel):
    """A trained link predictor. It has all of :class:`TrainedModel`, but its scores are those of links.

    Attributes
    ----------
    history : polars.DataFrame
        As that of :class:`TrainedModel`, with ``val_mrr`` for accuracy and micro-F1. ``loss`` is the mean over
        positives and negatives.
    summary : dict
        As that of :class:`TrainedModel`, with ``val_mrr``, ``val_hits@1``, ``val_hits@3``, ``val_hits@10``, the
        same with filtered ranks (``val_filtered_mrr`` and so on), ``val_auc``, and all of these of ``test``.
    decoder : {"cosine", "dot", "mlp"}
        The decoder.
    embeddings : numpy.ndarray or None
        float32, of shape (n, width): the learned row of each vertex, which is also in ``embeddings.npy`` in the output
        folder. None if only features were used. In a graph with types ``learned`` has the rows, by type.
    relations : tuple of tuple of str
        The relations whose edges were predicted: type of the sources, name, and type of the targets. A graph without
        types has one, without names.
    """

    decoder: PairDecoderName = "cosine"
    embeddings: npt.NDArray[np.float32] | None = None
    relations: tuple[EdgeKey, ...] = (ONLY_RELATION,)

    _predicted: ClassVar[tuple[Predicted, ...]] = ("embeddings",)

    def network(self) -> LinkNetwork:
        """Return encoder and decoder with the weights of the best epoch, in evaluation mode."""
        network = network_with(self.decoder, len(self.relations))(self.task, self.options)
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
        dataset = LinkDataset(source)
        self._refuse_other(dataset)
        network = self.network()
        match_categories(network, self.task, dataset.task, dataset.path)
        partition = dataset.partition
        parts = partition.parts
        chosen = Chosen.of(vertices, range(len(partition)))
        result = result_need(self.task, what, self.options.hidden, target, chosen.count)
        needed = [*evaluation(dataset, self.options, 1), result]
        fits = fitting(dataset, self.options, left_by(needed, run, "predicting"))
        wanted = np.concatenate([chosen.mask(np.asarray(part.inner)) for part in parts])
        with scratch(target, run.tmp_dir) as (folder, layers_in):
            rows = OutputRows(chosen, None if target is None else folder / target.name)
            learned = self.embeddings is not None
            own, layers = list(range(len(parts))), self.options.layers
            if isinstance(self.task, TypedTask):
                dataset.task = self.task
            found = Encodings(dataset, own, layers_in, layers, fits=fits, learned=learned)
            found.put_inputs(self._inputs_of(dataset))
            encoded = found.encoded(network.encoder, wanted)
            rows.put(np.empty(0, np.int64), np.empty((0, self.options.hidden), np.float32), torch.ones(0))
            by_type = ((of_type(partition, name)[part].inner[local], h) for name, (part, local, h) in encoded)
            for inner, h in reported(by_type, chosen.count, run):
                rows.put(inner, h.numpy(), h.isfinite().all(1))
            return rows.moved(target)

    def _inputs_of(self, dataset: LinkDataset) -> LearnedPart:
        """Return what finds the inputs of a type in a part that has learned rows."""
        table = self.embeddings
        learned = learned_of(dataset, self.learned or {})

        def of_part(name: str, part: int) -> npt.NDArray[Any]:
            inner = dataset.partition.parts[part].inner
            rows = learned(name, part) if table is None else table[inner]
            return np.concatenate([*dataset.features_of(name, part), rows], axis=1)

        return of_part

    @called_well
    def probabilities(
        self, source: PartitionSource, pairs: npt.ArrayLike, relation: str | None = None
    ) -> npt.NDArray[np.float32]:
        """Return the probability that the model gives to each pair of vertices to be linked.

        Parameters
        ----------
        source : path
            As for :meth:`.TrainedModel.predict`.
        pairs : array
            Ids of sources and targets, of shape (pairs, 2).
        relation : str, optional
            The name of the relation that links them. It may be left out if edges of one relation were predicted.

        Returns
        -------
        numpy.ndarray
            float32, of shape (pairs,). It is relative to the negatives of the training.

        Raises
        ------
        ParameterError
            As for :meth:`.TrainedModel.predict`, ids that are not those of vertices at the ends of the relation, or a
            relation that was not predicted.
        """
        number = self._number_of(relation)
        dataset = LinkDataset(source)
        ids = np.asarray(pairs)
        if ids.ndim != 2 or ids.shape[1] != 2 or (ids.size and ids.dtype.kind not in "iu"):
            raise ParameterError(
                f"pairs: expected ids of shape (pairs, 2), got {ids.dtype} of shape {ids.shape}"
            )
        self._refuse_other(dataset)
        for end, name in enumerate(self.relations[number][::2]):
            known, given = range_of_type(dataset.partition, name), ids[:, end]
            if given.size and not known.start <= given.min() <= given.max() < known.stop:
                raise ParameterError(
                    f"pairs: ids must be from {known.start} to {known.stop - 1}"
                    + (f", those of {name!r}, at the {ENDS[end]}" if name else "")
                )
        rows = torch.from_numpy(np.asarray(self.predict(source)))
        decoder = self.network().decoder_of(number)
        blocks = torch.from_numpy(ids.astype(np.int64)).split(_BLOCK)
        with torch.no_grad():
            found = [decoder(*(rows[ends] for ends in block.T)).sigmoid() for block in blocks]
        return torch.cat(found).numpy()

    def _number_of(self, relation: str | None) -> int:
        """Return the number of a relation among those that were predicted."""
        names = [name for _, name, _ in self.relations]
        if relation is None and len(names) == 1:
            return 0
        if relation is None or relation not in names or not relation:
            known = ", ".join(map(repr, names)) if names[0] else "none: the graph has no types"
            raise ParameterError(f"relation: {relation!r} was not predicted. There are {known}")
        return names.index(relation)

    def _refuse_other(self, dataset: LinkDataset) -> None:
        """Refuse a directory whose vertices have no rows, or other features."""
        refuse_other_types(dataset, self.task)
        n, width = (0, 0) if self.embeddings is None else self.embeddings.shape
        if (
            not self.task.target
            and self.embeddings is None
            and self._may_change.get("arguments", {}).get("embeddings")
        ):
            raise ParameterError(
                "the learned rows are written when the training ends, which it has not yet. Go on with resume()"
            )
        if width and n != len(dataset.partition):
            raise ParameterError(
                f"source: {shown(dataset.path)} has {len(dataset.partition)} vertices, but there are learned rows of "
                f"{n}"
            )
        if not self.task.target and dataset.task.features + width != self.task.features:
            raise ParameterError(
                f"source: {shown(dataset.path)} has {dataset.task.features} features, but the model was trained on "
                f"{self.task.features - width}"
            )

    def __repr__(self) -> str:
        summary = self.summary
        return (
            f"<TrainedLinks: {summary['epochs']} epochs, the best {summary['best_epoch']}, "
            f"{test_of(summary, 'mrr')}>"
        )


def opened(trained: TrainedModel, noted: Mapping[str, Any]) -> TrainedLinks:
    """Return the result of a training that was kept."""
    learned = None if noted["embeddings"] is None or trained.task.target else kept_rows(trained)
    relations = tuple(map(tuple, noted.get("relations", [ONLY_RELATION])))
    return TrainedLinks(**vars(trained), decoder=noted["decoder"], embeddings=learned, relations=relations)
