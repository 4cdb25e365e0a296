"""The result of link prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from ...core.calls import called_well
from ...core.options import RunOptions
from ...core.parameters import shown
from ...errors import ParameterError
from ...partitions.partition import PartitionSource
from ..memory import Need, evaluation, fitting, left_by
from ..method_options import PairDecoderName
from ..predicting import Chosen, OutputRows, Predicted, reported, scratch
from ..runs.trained import TrainedModel, kept_rows, test_of
from .dataset import LinkDataset
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
        As that of :class:`TrainedModel`, with ``val_mrr``, ``val_hits@1``, ``val_hits@3``, ``val_hits@10``, ``val_auc``
        and the same of ``test``.
    decoder : {"cosine", "dot", "mlp"}
        The decoder.
    embeddings : numpy.ndarray or None
        float32, of shape (n, width): the learned row of each vertex, which is also in ``embeddings.npy`` in the output
        folder. None if only features were used.
    """

    decoder: PairDecoderName = "cosine"
    embeddings: npt.NDArray[np.float32] | None = None

    _predicted: ClassVar[tuple[Predicted, ...]] = ("embeddings",)

    def network(self) -> LinkNetwork:
        """Return encoder and decoder with the weights of the best epoch, in evaluation mode."""
        network = network_with(self.decoder)(self.task, self.options)
        network.load_state_dict(self.weights)
        return network.eval()

    def _outputs(
        self,
        source: PartitionSource,
        outputs: Predicted,
        target: Path | None,
        run: RunOptions,
        vertices: Any = None,
    ) -> npt.NDArray[Any]:
        dataset = LinkDataset(source)
        self._refuse_other(dataset)
        parts = dataset.partition.parts
        chosen = Chosen.of(vertices, range(len(dataset.partition)))
        result = 0 if target else 4 * self.options.hidden * self.options.heads * chosen.count
        needed = [*evaluation(dataset, self.options, 1), Need("the result", result, "out=, a file")]
        fits = fitting(dataset, self.options, left_by(needed, run))
        with scratch(target, run.tmp_dir) as (folder, layers_in):
            rows = OutputRows(chosen, None if target is None else folder / target.name)
            learned = self.embeddings is not None
            own, layers = list(range(len(parts))), self.options.layers
            found = Encodings(dataset, own, layers_in, layers, fits=fits, learned=learned)
            if self.embeddings is not None:
                for index, part in enumerate(parts):
                    inputs = [*dataset.features_of(index), self.embeddings[part.inner]]
                    found.put(index, np.concatenate(inputs, axis=1))
            wanted = [chosen.mask(np.asarray(part.inner)) for part in parts]
            encoded = found.outputs(self.network().encoder, wanted.__getitem__)
            for index, local, h in reported(encoded, chosen.count, run):
                rows.put(parts[index].inner[local], h.numpy(), h.isfinite().all(1))
            return rows.moved(target)

    @called_well
    def probabilities(self, source: PartitionSource, pairs: npt.ArrayLike) -> npt.NDArray[np.float32]:
        """Return the probability that the model gives to each pair of vertices to be linked.

        Parameters
        ----------
        source : path
            As for :meth:`.TrainedModel.predict`.
        pairs : array
            Ids of sources and targets, of shape (pairs, 2).

        Returns
        -------
        numpy.ndarray
            float32, of shape (pairs,). It is relative to the negatives of the training.

        Raises
        ------
        ParameterError
            As for :meth:`.TrainedModel.predict`, or ids that are not those of vertices.
        """
        rows = torch.from_numpy(np.asarray(self.predict(source)))
        ids = np.asarray(pairs)
        if ids.ndim != 2 or ids.shape[1] != 2 or (ids.size and ids.dtype.kind not in "iu"):
            raise ParameterError(
                f"pairs: expected ids of shape (pairs, 2), got {ids.dtype} of shape {ids.shape}"
            )
        if ids.size and not 0 <= ids.min() <= ids.max() < len(rows):
            raise ParameterError(f"pairs: ids must be from 0 to {len(rows) - 1}")
        decoder, blocks = self.network().decoder, torch.from_numpy(ids.astype(np.int64)).split(_BLOCK)
        with torch.no_grad():
            found = [decoder(*(rows[ends] for ends in block.T)).sigmoid() for block in blocks]
        return torch.cat(found).numpy()

    def _refuse_other(self, dataset: LinkDataset) -> None:
        """Refuse a directory whose vertices have no rows, or other features."""
        n, width = (0, 0) if self.embeddings is None else self.embeddings.shape
        if self.embeddings is None and self.may_change.get("arguments", {}).get("embeddings"):
            raise ParameterError(
                "the learned rows are written when the training ends, which it has not yet. Go on with resume()"
            )
        if width and n != len(dataset.partition):
            raise ParameterError(
                f"source: {shown(dataset.path)} has {len(dataset.partition)} vertices, but there are learned rows of "
                f"{n}"
            )
        if dataset.task.features + width != self.task.features:
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
    learned = None if noted["embeddings"] is None else kept_rows(trained)
    return TrainedLinks(**vars(trained), decoder=noted["decoder"], embeddings=learned)
