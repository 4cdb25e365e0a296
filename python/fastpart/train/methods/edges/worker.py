"""The worker: epochs over the records to train on, one step for each batch of all workers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ....loading import LinkBatch, TypedLinkBatch
from ....partitions.types import of_relation
from ...jobs.job import Place
from ...method_options import EdgeOptions
from ...models import takes_edge_attr
from ..links import steps
from ..links.steps import Links
from ..sampled import worker as sampled
from ..sampled.steps import StepSource
from .dataset import LabelledEdges, attributes_of
from .trained import EdgeNetwork, RecordOutputs, edge_network


@dataclass(kw_only=True)
class Step(steps.Step):
    """The records of a step that one worker computes. ``y`` are their labels.

    Attributes
    ----------
    attributes : torch.Tensor or None
        Features of the records, if there are any.
    """

    attributes: Tensor | None

    def moved(self, move: Callable[[Tensor], Tensor]) -> Self:
        """Return the step with tensors that were moved."""
        attributes = None if self.attributes is None else move(self.attributes)
        return replace(super().moved(move), attributes=attributes)

    @property
    def tensors(self) -> list[Tensor]:
        """All that :meth:`moved` moves."""
        return [*super().tensors, *([] if self.attributes is None else [self.attributes])]


class Edges(Links):
    """Records to train on, with sampled neighbours of their ends, which the records of a batch are left out of."""

    def __init__(
        self, dataset: LabelledEdges, options: EdgeOptions, free_bytes: int, edge_attr: bool
    ) -> None:
        self._width, self._known = dataset.task.edge_features, dataset.supervision
        self._rows = of_relation(dataset.partition, dataset.records.name)
        super().__init__(dataset, options, free_bytes, edge_attr, self._known.pairs, [dataset.key])

    def _step(self, batch: LinkBatch | TypedLinkBatch, relation: int) -> Step:
        step = super()._step(batch, relation)
        chosen = batch.input_id.numpy()
        attributes = self._attributes(chosen)
        return Step(**{**vars(step), "y": self._known.labels[batch.input_id], "attributes": attributes})

    def _attributes(self, chosen: npt.NDArray[np.int64]) -> Tensor | None:
        """Return the features of some records to train on, if there are any."""
        if not self._width:
            return None
        rows, owners, places = (
            torch.empty(len(chosen), self._width),
            self._known.parts[chosen],
            self._known.places,
        )
        for owner in np.unique(owners):
            those = np.flatnonzero(owners == owner)
            found = attributes_of(self._rows[owner], places[chosen[those]])
            assert found is not None
            rows[torch.from_numpy(those)] = found
        return rows


class Worker(sampled.Worker):
    """A worker. Its network is an encoder with a head."""

    open = LabelledEdges
    outputs = RecordOutputs
    make = staticmethod(edge_network)
    network: EdgeNetwork

    def _source(self, dataset: Any, options: Any, place: Place, owners: npt.NDArray[np.int64]) -> StepSource:
        return Edges(dataset, options, place.free_bytes, takes_edge_attr(self.network.encoder))

    def _logits(self, step: Any) -> Tensor:
        dtype = self.learner.dtype
        with self.learner.computing():
            return self.network.head(*self.network.ends_of(step, dtype), step.attributes).to(dtype)
