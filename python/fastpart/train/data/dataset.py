"""A partition directory as training data: the task, the parts, and the whole graph."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ... import _core
from ...core.inputs import known_of
from ...core.parameters import shown
from ...errors import GraphFormatError, ParameterError, arg, code
from ...graphs.graph_directory import Embedded, EmbeddedColumn, embedded_in
from ...partitions.part_files import MANIFEST
from ...partitions.partition import Partition, PartitionSource, VertexPartition, directory_of
from ...partitions.parts import EdgePartData, PartData, VertexPartData
from ...partitions.stored_graph import refuse_without_edges
from ...partitions.types import (
    ONLY_RELATION,
    ONLY_TYPE,
    EdgeKey,
    edge_keys,
    entry_of_type,
    of_relation,
    of_type,
    range_of_type,
    rows_of_type,
    type_names,
    types_with,
)
from ...store import open_partition
from ...store.manifest import CATEGORIES
from ..graphs.kernels import CPU
from ..graphs.rows import alone
from ..learning.local_graph import (
    LocalGraph,
    features_of,
    graph_of,
    in_order,
    typed_graph_of,
    whole_typed_graph,
)
from ..models.scores import Task, TypedTask
from ..options import Options

Ids = npt.NDArray[np.int64]
AnyPart = TypeVar("AnyPart", bound=PartData)

SPLITS = ("train", "val", "test")


_MOST_CLASSES = 1 << 16
"""More classes than this need as many vertices. Each is an output of the model."""


class AnyDataset(ABC, Generic[AnyPart]):
    """A partition directory to train on, of vertices or of edges.

    Attributes
    ----------
    path : pathlib.Path
        The directory.
    partition : Partition
        Its parts.
    manifest : dict
        Its ``manifest.json``.
    task : Task
        The classification task.
    target : str
        The type of the vertices with labels. Without types it is empty.
    """

    target: str = ONLY_TYPE
    item: ClassVar[str] = "vertex"
    """An item that has labels."""
    of: ClassVar[str]
    refusal: ClassVar[str]
    """The end of the message that refuses the other type of partition."""
    propagates: ClassVar = True
    """Whether its items are vertices, whose labels can be propagated over edges."""

    def __init__(self, source: PartitionSource, target: str | None = None) -> None:
        self.path = directory_of(source)
        self.partition: Partition = open_partition(self.path)
        if self.partition.of != self.of:
            raise ParameterError(f"source: {shown(self.path)} is {self.refusal}")
        self.manifest: dict[str, Any] = self.partition.manifest or {}
        self._take_target(target)
        self._refuse_incomplete()
        self.task = replace(self._task(), edge_features=self._edge_width())
        if not self.num_train:
            raise ParameterError(f"source: {shown(self.path)} has no labelled {self.item} to train on")

    @property
    def has_types(self) -> bool:
        """Whether the graph has types."""
        return "types" in self.manifest

    @property
    def types(self) -> Mapping[str, Sequence[Any]]:
        """The vertices of each type in each part."""
        return {ONLY_TYPE: self.partition.parts}

    @property
    def relations(self) -> Mapping[EdgeKey, Sequence[Any]]:
        """The in-edges of each relation in each part."""
        return {ONLY_RELATION: self.partition.parts}

    def refuse_types(self) -> None:
        """Raise an error if the graph has types, for a method that does not train over them."""
        if self.has_types:
            raise ParameterError(
                f"source: {shown(self.path)} holds a graph with types. Train over it with "
                f"{code('fastpart.train.sampled', '`fastpart train sampled`')} and a model for types, as "
                + arg("model='rgcn'")
            )

    def refuse_categories(self, why: str) -> None:
        """Raise an error if features hold codes of categories, for a method that does not learn rows of them."""
        if self.task.categories:
            names = ", ".join(repr(column) for of_type in self.task.categories.values() for column in of_type)
            raise ParameterError(
                f"source: {shown(self.path)} has codes of categories ({names}). {why}. Train with sampled, bytegnn, "
                "armada, links, edges, sdt or full, or ingest them with `as: onehot`"
            )

    def _take_target(self, target: str | None) -> None:
        """Check the type of the vertices with labels."""
        self.refuse_types()
        if target:
            raise ParameterError(f"target: {shown(self.path)} holds a graph without types. Leave it out")

    def without_edge_features(self) -> Self:
        """Leave out the features of edges, for a method that does not hand them over, and return this."""
        self.task = replace(self.task, edge_features=0)
        return self

    def _edge_width(self) -> int:
        """Return the width of the features of edges."""
        row = self.partition.parts[0].row_type("edge_features")
        return 0 if row is None else math.prod(row[1])

    @abstractmethod
    def own(self, part: AnyPart) -> npt.NDArray[np.bool_]:
        """Return the mask of the inner vertices that the part trains on. Each vertex belongs to one part."""

    @abstractmethod
    def _rows(self) -> tuple[Ids, Ids, Ids]:
        """Return indptr and sources of the in-edges of the whole graph, by ascending vertex.

        The last array has the place of each in-edge among the in-edges of all parts.
        """

    @abstractmethod
    def _own_edges(self, part: AnyPart) -> int:
        """Return how many of the first in-edges of a part :meth:`_rows` takes."""

    def _edge_attr(self, places: Ids) -> Tensor | None:
        """Return the features of in-edges of the whole graph, given their places among the in-edges of all parts."""
        if not self.task.edge_features:
            return None
        pieces = []
        for part in self.partition.parts:
            assert part.edge_features is not None
            rows = part.edge_features[: self._own_edges(part)]
            pieces.append(np.asarray(rows, np.float32).reshape(len(rows), self.task.edge_features))
        return torch.from_numpy(np.concatenate(pieces)[places])

    @cached_property
    def train_counts(self) -> list[int]:
        """Labelled training vertices of each part."""
        return [len(self.splits(part)["train"]) for part in self.partition.parts]

    @property
    def num_train(self) -> int:
        """Labelled training vertices."""
        return sum(self.train_counts)

    @property
    def num_val(self) -> int:
        """Labelled validation vertices, or edges to validate on."""
        return self.count_of("val")

    def count_of(self, split: str) -> int:
        """Return how many labelled vertices, or edges to predict, a split has."""
        if split not in self.known.get("splits", []):
            return 0
        return sum(len(self.splits(part)[split]) for part in self.partition.parts)

    @property
    def targets(self) -> range:
        """The vertices that outputs are of."""
        return range(int(self.manifest["n"]))

    @property
    def known(self) -> Mapping[str, Any]:
        """The entry of the manifest that describes the vertices with labels."""
        return self.manifest

    def labelled(self, part: AnyPart) -> Any:
        """Return the rows of the vertices with labels of a part."""
        return part

    def labels(self, part: AnyPart) -> Tensor:
        """Return the labels of the inner vertices, as the task's losses take them."""
        return self.task.targets(torch.from_numpy(np.array(self.labelled(part).labels)))

    def ids_of(self, part: AnyPart, places: Ids) -> Ids:
        """Return the ids of items with labels, given their places in a part."""
        return np.asarray(part.vertices[places], np.int64)

    def inputs_of(self, part: AnyPart, places: Ids) -> npt.NDArray[np.float32] | None:
        """Return the features of items with labels, given their places in a part. None: they have none."""
        rows = self.labelled(part)
        return None if rows.stored_features is None else np.asarray(rows.features_of(places), np.float32)

    @property
    def codes(self) -> Embedded:
        """The columns of these features that hold codes of categories."""
        return self.task.categories.get(self.target, {})

    def splits(self, part: AnyPart) -> dict[str, Tensor]:
        """Return the local ids of the part's own labelled vertices of each split, int64, ascending."""
        rows = self.labelled(part)
        assert rows.labels is not None
        own = self.own(part)
        known = own & known_of(rows.labels)
        masks = {name: getattr(rows, name) for name in SPLITS}
        return {
            name: torch.from_numpy(np.flatnonzero(known & mask) if mask is not None else np.empty(0, int))
            for name, mask in masks.items()
        }

    def whole(self, device: torch.device = CPU) -> LocalGraph:
        """Return the whole graph on a device. Local ids are global ids, in a graph with types within the type."""
        n, first, like = len(self.targets), self.targets.start, self.task.example()[1]
        labels = torch.empty((n, *like.shape[1:]), dtype=like.dtype)
        times = np.zeros(n, np.int64)
        splits: dict[str, list[Ids]] = {name: [] for name in SPLITS}
        for part in self.partition.parts:
            ids = (self.labelled(part).inner if self.has_types else part.vertices) - first
            own = np.flatnonzero(self.own(part))
            times[ids[own]] += 1
            labels[ids[own]] = self.labels(part)[own]
            for name, chosen in self.splits(part).items():
                splits[name].append(ids[chosen.numpy()])
        if np.any(times != 1):
            vertex = int(np.flatnonzero(times != 1)[0])
            raise GraphFormatError(
                f"{shown(self.path)}: vertex {first + vertex} belongs to {times[vertex]} parts instead of 1"
            )
        chosen_ids = {
            name: torch.from_numpy(np.sort(np.concatenate(pieces))) for name, pieces in splits.items()
        }
        graph, features = self._whole(device)
        return LocalGraph(graph, features, labels.to(device), chosen_ids, np.array(self.targets), n, device)

    def _whole(self, device: torch.device) -> tuple[Any, Any]:
        """Return the in-edges and the features of the whole graph on a device."""
        n = int(self.manifest["n"])
        features = np.empty((n, self.task.features), np.float32)
        degree = np.zeros(n, np.int64)
        for part in self.partition.parts:
            own = np.flatnonzero(self.own(part))
            ids = part.vertices[own]
            features[ids], degree[ids] = part.features[own], part.degree[own]
        indptr, sources, places = self._rows()
        graph = graph_of(indptr, sources, degree, np.arange(n), device, self._edge_attr(places))
        return graph, torch.from_numpy(features).to(device)

    def _refuse_incomplete(self) -> None:
        missing = [name for name in ("features", "labels") if name not in self.manifest]
        if "train" not in self.manifest.get("splits", []):
            missing.append("splits")
        if "directedness" not in self.manifest:
            missing.insert(0, "graph")
        self._refuse_missing(missing)

    def _refuse_missing(self, missing: Sequence[str], of: str = "") -> None:
        """Raise an error if data are missing, of a type or relation by its name if there are several."""
        if missing:
            what = f"{', no '.join(missing)}{f' of {of!r}' if of else ''}"
            raise ParameterError(
                f"source: {shown(self.path)} holds no {what}. Save the partition with {saving(missing, of)}"
            )

    def _task(self) -> Task:
        row = self.partition.parts[0].row_type("features")  # they may be on other machines
        assert row is not None
        return Task(width_of(row[1]), **self._outputs(), categories=categories_of(self.manifest))

    def _outputs(self) -> dict[str, Any]:
        """Return what the labels say of the outputs of a model."""
        parts = [self.labelled(part) for part in self.partition.parts]
        labels = parts[0].labels
        assert labels is not None
        if labels.dtype.kind == "f":
            classes = labels.shape[1] if labels.ndim == 2 else 1
            return {"classes": classes, "multilabel": False, "regression": True}
        if labels.ndim == 2:
            return {"classes": labels.shape[1], "multilabel": True}
        found = (part.labels for part in parts)
        classes = 1 + max((int(each.max(initial=-1)) for each in found if each is not None), default=-1)
        if classes > max(int(self.manifest["n"]), _MOST_CLASSES):
            raise ParameterError(
                f"source: the largest label in {shown(self.path)} is {classes - 1}, so a model would have {classes:,} "
                "outputs, more than there are vertices. Number the classes from 0 and save the partition again"
            )
        return {"classes": classes, "multilabel": False}


def saving(names: Sequence[str], of: str = "") -> str:
    """Return the code that saves a partition with data of these names, of a type or relation if given, for an error."""
    value = f"{{{of!r}: ...}}" if of else "..."
    given = ", ".join(f"{name}={value}" for name in names)
    # The shell always saves the graph.
    options = "".join(f" --{name.replace('_', '-')} FILE" for name in names if name != "graph")
    python, shell = f"p.save(DIR, {given})", f"`fastpart partition GRAPH -o DIR{options}`"
    return code(python, f"`{python}` in Python" if of else shell)


def the_only(labelled: Sequence[str], parameter: str, items: str, nothing: str) -> str:
    """Return the only name of what has labels, or refuse: several, which the parameter chooses from, or ``nothing``."""
    if len(labelled) > 1:
        raise ParameterError(
            f"{parameter}: {', '.join(labelled)} have labels and training {items}. Name one of them with "
            + arg(parameter)
        )
    if not labelled:
        raise ParameterError(nothing)
    return labelled[0]


def width_of(row_shape: tuple[int, ...]) -> int:
    """Return the width of rows of features. Refuse those that are no rows of numbers."""
    if len(row_shape) != 1 or row_shape[0] == 0:
        raise ParameterError(
            f"source: expected features of shape (n, width), got (n, {', '.join(map(str, row_shape))})"
        )
    return row_shape[0]


class Dataset(AnyDataset[VertexPartData]):
    """A partition of the vertices to train on. It has the attributes of :class:`AnyDataset`."""

    partition: VertexPartition
    of = "vertices"
    refusal = (
        "an edge partition. This method trains over parts of the vertices. Make a vertex partition, as with "
        f"{code('fastpart.spring', '`fastpart partition GRAPH --algorithm spring`')}, or train over this one with "
        "distgnn"
    )

    def __init__(self, source: PartitionSource, target: str | None = None) -> None:
        super().__init__(source, target)
        self._caches: dict[int, dict[Any, Any]] = {}

    def _take_target(self, target: str | None) -> None:
        """Find the type of the vertices with labels, if there are types."""
        if not self.has_types:
            super()._take_target(target)
            return
        names = type_names(self.partition)
        if target is not None and target not in names:
            raise ParameterError(f"target: {target!r} is not one of the types {', '.join(names)}")
        self.target = target or self._only_labelled(names)

    def _only_labelled(self, names: Sequence[str]) -> str:
        """Return the type that has labels and training vertices."""
        found = [
            name
            for name in types_with("train", self.partition)
            if "labels" in entry_of_type(self.partition, name)
        ]
        given = " and ".join(f"{name}={{{names[0]!r}: ...}}" for name in ("labels", "splits"))
        by_schema = (
            "labels and splits of a type. In the schema of `fastpart ingest` these are `label: COLUMN` and "
            "`split: {by: random, train: 0.8, val: 0.1, test: 0.1}`"
        )
        nothing = (
            f"source: no type in {shown(self.path)} has labels and training vertices. Save the partition with "
            + code(given, by_schema)
        )
        return the_only(found, "target", "vertices", nothing)

    @property
    def targets(self) -> range:
        """The vertices of the target."""
        return range_of_type(self.partition, self.target)

    @property
    def known(self) -> Mapping[str, Any]:
        """The entry of the manifest that describes the target."""
        return entry_of_type(self.partition, self.target)

    def labelled(self, part: VertexPartData) -> Any:
        """Return the vertices of the target in a part."""
        return rows_of_type(part, self.target)

    @cached_property
    def topology(self) -> _core.Topology:
        """The in-edges of all vertices, mapped."""
        return self.partition._topology

    def ids_of(self, part: VertexPartData, places: Ids) -> Ids:
        """Return the ids of vertices of the target."""
        return np.asarray(self.labelled(part).inner[places], np.int64)

    def rows_of(self, part: VertexPartData, places: Ids) -> Ids:
        """Return the rows of vertices of the target in the topology."""
        return places + (int(self.topology.starts[part.index]) + self.labelled(part).first_inner)

    def own(self, part: VertexPartData) -> npt.NDArray[np.bool_]:
        """Return a mask of all inner vertices of the target."""
        return np.ones(self.labelled(part).num_inner, bool)

    @property
    def rows_learned(self) -> int:
        """Vertices of the types whose rows are learned."""
        return sum(len(range_of_type(self.partition, name)) for name in self.task.learned)

    def fanouts(self, options: Options) -> Any:
        """Return the fanouts of each hop, or of each relation if the user named relations."""
        return options.relation_fanouts or options.fanouts

    @property
    def types(self) -> Mapping[str, Sequence[Any]]:
        """The vertices of each type in each part."""
        return {name: of_type(self.partition, name) for name in type_names(self.partition)}

    @property
    def relations(self) -> Mapping[EdgeKey, Sequence[Any]]:
        """The in-edges of each relation in each part."""
        return {key: of_relation(self.partition, key[1]) for key in edge_keys(self.partition)}

    def _whole(self, device: torch.device) -> tuple[Any, Any]:
        """Return the in-edges and the features of the whole graph on a device, by relation and by type."""
        if not self.has_types:
            return super()._whole(device)
        features = {}
        for name, of_parts in self.types.items():
            rows = np.empty(
                (len(range_of_type(self.partition, name)), self.task.input_widths(0)[name]), np.float32
            )
            for part in of_parts:
                rows[part.inner - part.type.first] = part.features
            features[name] = torch.from_numpy(rows).to(device)
        return whole_typed_graph(self.partition, device), features

    def part(self, index: int, device: torch.device = CPU) -> LocalGraph:
        """Return a part with its halo and the halo's features, on a device."""
        parts = self.partition.parts
        part, labelled = parts[index], self.labelled(parts[index])
        widths = self.task.input_widths(0)
        if self.has_types:
            graph: Any = typed_graph_of(part, edge_keys(self.partition), device)
        else:
            attributes = self._edge_attr_of(part)
            graph = graph_of(part.indptr, part.indices, part.degree, part.vertices, device, attributes)
        return LocalGraph(
            graph,
            alone({name: features_of(parts, part, name, width).to(device) for name, width in widths.items()}),
            self.labels(part).to(device),
            self.splits(part),
            labelled.inner if self.has_types else part.vertices,
            labelled.num_inner,
            device,
            self._caches.setdefault(index, {}),
        )

    def _refuse_incomplete(self) -> None:
        if not self.has_types:
            super()._refuse_incomplete()
        refuse_without_edges(self.partition, "source")
        missing = [] if "labels" in self.known else ["labels"]
        if "train" not in self.known.get("splits", []):
            missing.append("splits")
        self._refuse_missing(missing, self.target)

    def _task(self) -> Task:
        if not self.has_types:
            return super()._task()
        return task_over_types(self.partition, (self.target,), **self._outputs())

    def _edge_attr_of(self, part: VertexPartData) -> Tensor | None:
        """Return the features of the in-edges of a part."""
        if not self.task.edge_features:
            return None
        assert part.edge_features is not None
        return torch.from_numpy(
            np.array(part.edge_features, np.float32).reshape(part.num_edges, self.task.edge_features)
        )

    def _own_edges(self, part: VertexPartData) -> int:
        return int(part.indptr[part.num_inner])

    def _rows(self) -> tuple[Ids, Ids, Ids]:
        pieces = []
        for part in self.partition.parts:
            edges = self._own_edges(part)
            pieces.append((np.diff(part.indptr[: part.num_inner + 1]), part.vertices[part.indices[:edges]]))
        return in_order(np.concatenate([part.inner for part in self.partition.parts]), pieces)


def task_over_types(partition: VertexPartition, returned: tuple[str, ...], **outputs: Any) -> TypedTask:
    """Return the task of a graph with types: the first of the ``returned`` ones has the labels."""
    part, names = partition.parts[0], type_names(partition)
    rows = {name: part.of_type(name).row_type("features") for name in names}
    widths = {name: 0 if row is None else width_of(row[1]) for name, row in rows.items()}
    of_edges = {
        each.name: part.of_relation(each.name).row_type("edge_features") for each in part.edge_types or ()
    }
    return TypedTask(
        widths[returned[0]],
        **outputs,
        types=tuple(names),
        edge_types=tuple(edge_keys(partition)),
        widths=widths,
        edge_widths={name: width_of(row[1]) for name, row in of_edges.items() if row is not None},
        returned=returned,
        categories=categories_of(partition.parts._manifest),
    )


def categories_of(manifest: Mapping[str, Any]) -> dict[str, dict[str, EmbeddedColumn]]:
    """Return the columns of codes of the types that have any."""
    entries = (
        {each["name"]: each for each in manifest["types"]} if "types" in manifest else {ONLY_TYPE: manifest}
    )
    known = {name: each[CATEGORIES] for name, each in entries.items() if CATEGORIES in each}
    return {name: embedded_in(each, MANIFEST) for name, each in known.items()}


class EdgeDataset(AnyDataset[EdgePartData]):
    """A partition of the edges to train on. It has the attributes of :class:`fastpart.train.data.dataset.AnyDataset`.

    A part trains on the vertices whose root it holds. Every vertex has one root, also an isolated one.
    """

    of = "edges"
    refusal = (
        "a vertex partition. This method trains over parts of the edges. Make an edge partition with "
        + code(
            'fastpart.algorithms.hdrf, fastpart.algorithms.dbh or fastpart.sigma(..., of="edges")',
            "`fastpart partition GRAPH --of edges -o DIR`",
        )
    )

    @cached_property
    def topology(self) -> _core.Topology:
        """The in-edges of all vertices, in memory as one part. The row of a vertex is its id."""
        indptr, sources, _ = self._rows()
        return _core.Topology.in_memory(np.arange(len(indptr) - 1), indptr, sources.astype(np.int32))

    def rows_of(self, part: EdgePartData, places: Ids) -> Ids:
        """Return the rows of vertices in the topology."""
        return self.ids_of(part, places)

    def own(self, part: EdgePartData) -> npt.NDArray[np.bool_]:
        """Return the mask of the vertices whose root is in the part."""
        return part.root == part.index

    def _own_edges(self, part: EdgePartData) -> int:
        return part.num_edges

    def _rows(self) -> tuple[Ids, Ids, Ids]:
        parts = [part.in_edges() for part in self.partition.parts]
        sources, destinations, edge_ids = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        # Sorting a row by record, as in vertex partitions, makes sums equal to the last bit.
        order = np.lexsort((edge_ids % max(int(self.manifest["m"]), 1), destinations))
        counts = np.bincount(destinations, minlength=int(self.manifest["n"]))
        return np.concatenate(([0], np.cumsum(counts))), sources[order], order


def open_dataset(source: PartitionSource, target: str | None = None) -> Dataset | EdgeDataset:
    """Return the dataset of a partition directory of vertices or of edges."""
    path = directory_of(source)
    return EdgeDataset(path, target) if open_partition(path).of == "edges" else Dataset(path, target)
