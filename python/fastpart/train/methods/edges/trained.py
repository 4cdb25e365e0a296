"""The network of labelled edges, its exact outputs from all neighbours of both ends, and the result of a training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ....core.options import RunOptions
from ....core.parameters import shown
from ....errors import ParameterError
from ....partitions.partition import PartitionSource
from ....partitions.types import ONLY_RELATION, EdgeKey
from ...data.dataset import SPLITS
from ...learning.metrics import Metrics, Scores
from ...memory import Need, evaluation, fitting, left_by
from ...models import build
from ...models.categories import match_categories
from ...models.scores import Task, TypedTask
from ...options import Options, Predicted
from ...runs.predicting import (
    Chosen,
    OutputRows,
    learned_of,
    refuse_other_types,
    refuse_without_types,
    reported,
    result_need,
    rows_of,
    scratch,
)
from ...runs.trained import TrainedModel
from ..links.decoders import PairNetwork, refuse_one_type
from ..links.scoring import Encodings
from .dataset import Ids, LabelledEdges, attributes_of

_BLOCK = 1 << 14
"""Records at a time."""


class Head(nn.Module):
    """A perceptron with one hidden layer over the rows of source and target, and the features of the edge."""

    def __init__(self, width: int, edge_features: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(2 * width + edge_features, hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, sources: Tensor, targets: Tensor, attributes: Tensor | None = None) -> Tensor:
        """Return the logits of each edge."""
        rows = [sources, targets, *([] if attributes is None else [attributes.to(sources.dtype)])]
        logits: Tensor = self.out(F.relu(self.hidden(torch.cat(rows, 1))))
        return logits


class EdgeNetwork(PairNetwork):
    """A network that returns logits of edges.

    Attributes
    ----------
    head : Head
        Returns the logits of edges, given the rows of their ends and their features.
    """

    def __init__(self, encoder: nn.Module, head: Head) -> None:
        super().__init__(encoder)
        self.head = head


def encoder_task(task: Task, options: Options) -> Task:
    """Return what an encoder is made for, given the task of edges: rows as wide as hidden layers."""
    return replace(task, classes=options.hidden, multilabel=False, regression=False)


def edge_network(task: Task, options: Options) -> EdgeNetwork:
    """Return the network of a task of edges."""
    encoder = build(encoder_task(task, options), options)
    if isinstance(task, TypedTask):
        refuse_one_type(encoder, options, "model")
    return EdgeNetwork(encoder, Head(options.hidden, task.edge_features, options.hidden, task.classes))


def noted_network(noted: Mapping[str, Any]) -> Callable[[Task, Options], EdgeNetwork]:
    """Return what makes the networks of ``edges``. The folder of a training notes nothing that it depends on."""
    return edge_network


@dataclass(frozen=True, eq=False)
class Wanted:
    """Records whose outputs are wanted.

    Attributes
    ----------
    places : dict of numpy.ndarray
        Their in-edges of the relation in each part of this process.
    vertices : numpy.ndarray
        Mask of the ends of the wanted records of all processes, by row of the topology.
    """

    places: dict[int, Ids]
    vertices: npt.NDArray[np.bool_]


class RecordOutputs(Encodings):
    """The outputs of networks for records, and their scores. Each record belongs to the part of its target."""

    _dataset: LabelledEdges

    @cached_property
    def _scored(self) -> dict[str, tuple[Wanted, dict[int, Tensor]]]:
        """The records of each split, and their labels in each part of this process."""
        dataset, parts = self._dataset, self._dataset.partition.parts
        members = {part.index: dataset.splits(part) for part in parts}
        found = {}
        for split in SPLITS[1:]:
            chosen = {index: splits[split].numpy() for index, splits in members.items()}
            wanted = self.wanted(chosen.__getitem__)
            found[split] = (
                wanted,
                {index: dataset.labels(parts[index])[chosen[index]] for index in wanted.places},
            )
        return found

    def wanted(self, chosen: Callable[[int], Ids]) -> Wanted:
        """Return what outputs need, given which of its records are wanted in each part."""
        mine, mask, topology = dict[int, Ids](), np.zeros(self._topology.num_vertices, bool), self._topology
        for part in self._dataset.partition.parts:
            records = self._dataset.labelled(part)
            places = records.places[chosen(part.index)]
            mask[topology.rows_of(records.ends(places).reshape(-1))] = True
            if part.index in self._own.parts:
                mine[part.index] = places
        return Wanted(mine, mask)

    @torch.no_grad()
    def scores(
        self, network: nn.Module, metrics: Metrics | None = None, splits: tuple[str, ...] = SPLITS[1:]
    ) -> dict[str, float]:
        """Return accuracy, micro-F1 and the metrics of the user for each split, the same in all processes."""
        assert isinstance(network, EdgeNetwork)
        scores = Scores(self._dataset.task, metrics, splits)
        for split in splits:
            wanted, labels = self._scored[split]
            for index, block, logits in self.of_records(network, wanted):
                scores.add(split, logits, labels[index][block])
        return scores.of_all()

    @torch.no_grad()
    def of_records(self, network: EdgeNetwork, wanted: Wanted) -> Iterator[tuple[int, slice, Tensor]]:
        """Yield a part of this process, some of its wanted records, and their outputs. All processes call it."""
        network.eval()
        if not wanted.vertices.any():
            return
        parts, topology = self._dataset.partition.parts, self._topology
        head = deepcopy(network.head).to("cpu")
        dtype = head.out.weight.dtype
        with self.stored(network.encoder, wanted.vertices) as stored:

            def rows_of(ids: Ids) -> Tensor:
                return torch.from_numpy(stored.gather(topology.rows_of(np.ascontiguousarray(ids)))).to(dtype)

            for index, chosen in wanted.places.items():
                records = self._dataset.labelled(parts[index])
                for start in range(0, len(chosen), _BLOCK):
                    places = chosen[start : start + _BLOCK]
                    sources, targets = map(rows_of, records.ends(places).T)
                    attributes = attributes_of(records.of, places)
                    yield index, slice(start, start + len(places)), head(sources, targets, attributes)


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
        records = 24 * dataset.records.m
        result = result_need(task, what, self.options.hidden, target, chosen.count)
        needed = [*evaluation(dataset, self.options, 1), Need("places of records", records), result]
        free = left_by(needed, run, "predicting")
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
