"""The result of a training on labels of edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ....core.options import RunOptions
from ....core.parameters import shown
from ....errors import ParameterError
from ....partitions.partition import PartitionSource
from ....partitions.types import ONLY_RELATION, EdgeKey
from ...memory import Need, evaluation, fitting, left_by
from ...models.categories import match_categories
from ...options import Predicted
from ...runs.predicting import (
    Chosen,
    OutputRows,
    learned_of,
    refuse_other_types,
    refuse_without_types,
    reported,
    rows_of,
    scratch,
)
from ...runs.trained import TrainedModel
from .dataset import LabelledEdges
from .outputs import EdgeNetwork, RecordOutputs, edge_network


@dataclass(frozen=True)
class TrainedEdges(TrainedModel):
    """A model trained on labels of edges. It has all of :class:`TrainedModel`, of records in place of vertices.

    Attributes
    ----------
    relation : tuple of str
        The relation whose records have the labels: type of the sources, name, and type of the targets. A graph without
        types has one, whose names are empty.
    """

    relation: EdgeKey = ONLY_RELATION

    _predicted: ClassVar[tuple[Predicted, ...]] = ("classes", "probabilities", "logits")
    _of: ClassVar = "edges"

    @property
    def _relation(self) -> str:
        return self.relation[1]

    def network(self) -> EdgeNetwork:
        """Return encoder and head with the weights of the best epoch, in evaluation mode."""
        network = edge_network(self.task, self.options)
        network.load_state_dict(self.weights)
        return network.eval()

    def _outputs(
        self,
        source: PartitionSource,
        what: Predicted,
        target: Path | None,
        run: RunOptions,
        wanted: Any = None,
    ) -> npt.NDArray[Any]:
        refuse_without_types(source, self.task)
        dataset = LabelledEdges(source, self.relation[1] or None)
        self._refuse_other(dataset)
        network = self.network()
        match_categories(network, self.task, dataset.task, dataset.path)
        parts, task = dataset.partition.parts, self.task
        chosen = Chosen.of(wanted, range(dataset.records.m), "edges")
        numbers = 2 if what == "classes" and not task.multilabel else task.classes
        records = 24 * dataset.records.m
        result = Need("the result", 0 if target else 4 * numbers * chosen.count, "out=, a file")
        needed = [*evaluation(dataset, self.options, 1), Need("places of records", records), result]
        free = left_by(needed, run)
        fits = fitting(dataset, self.options, free)
        with scratch(target, run.tmp_dir) as (folder, layers_in):
            rows = OutputRows(chosen, None if target is None else folder / target.name, "record")
            own = list(range(len(parts)))
            found = RecordOutputs(dataset, own, layers_in, self.options.layers, None, fits, free // 2)
            found.put_inputs(learned_of(dataset, self.learned or {}))
            ids = [dataset.labelled(part).ids for part in parts]
            records_of = found.wanted(lambda part: np.flatnonzero(chosen.mask(ids[part])))
            wanted_ids = [each[chosen.mask(each)] for each in ids]
            for part, block, logits in reported(found.of_records(network, records_of), chosen.count, run):
                defined = task.defined(logits)
                rows.put(wanted_ids[part][block], rows_of(what, logits, defined, task), defined)
            return rows.moved(target)

    def _refuse_other(self, dataset: LabelledEdges) -> None:
        """Refuse a directory with other features of vertices or of edges."""
        refuse_other_types(dataset, self.task)
        for name, what in {"features": "features", "edge_features": "features of edges"}.items():
            there, known = getattr(dataset.task, name), getattr(self.task, name)
            if there != known:
                raise ParameterError(
                    f"source: {shown(dataset.path)} has {there} {what}, but the model was trained on {known}"
                )


def opened(trained: TrainedModel, noted: Mapping[str, Any]) -> TrainedEdges:
    """Return the result of a training that was kept."""
    return TrainedEdges(**vars(trained), relation=tuple(noted.get("relation", ONLY_RELATION)))
