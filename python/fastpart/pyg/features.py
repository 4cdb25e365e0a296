"""Rows of a partition directory by id, and its in-edges as a whole, as PyG's loaders ask for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import EdgeAttr, FeatureStore, GraphStore, TensorAttr
from torch_geometric.data.graph_store import EdgeLayout

from .. import _core
from ..core.parameters import shown
from ..errors import FastpartError, GraphFormatError, ParameterError
from ..graphs.types import EdgeType, VertexType
from ..partitions.part_files import PartFiles
from ..partitions.part_rows import RelationData
from ..partitions.partition import VertexPartition
from ..partitions.types import (
    EdgeKey,
    edge_types,
    in_edges_of,
    key_of,
    of_relation,
    of_type,
    rows_of_relation,
    vertex_types,
)

Ids = npt.NDArray[np.int64]
Group = str | EdgeKey | None
"""What PyG calls the group of rows: a type, a relation, or None in a graph without types."""

_SPLITS = {"train_mask": "train", "val_mask": "val", "test_mask": "test"}


class StoredRows(ABC):
    """Rows by id. Files are mapped when they are asked for.

    Attributes
    ----------
    names : dict of str
        Name of the file of each attribute.
    """

    _of_files: ClassVar[Mapping[str, str]]

    def __init__(self, partition: VertexPartition) -> None:
        self._partition = partition
        manifest = self._parts()[0]._manifest
        stored = {*manifest, *manifest.get("splits", [])}
        self.names = {name: file for name, file in self._of_files.items() if file in stored}
        self._files: dict[str, _core.Features] = {}

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _parts(self) -> Sequence[PartFiles]:
        """Return the rows of each part."""

    @property
    @abstractmethod
    def starts(self) -> Ids:
        """First row of each part, and the number of rows."""

    @abstractmethod
    def rows_of(self, ids: Ids) -> npt.NDArray[Any]:
        """Return the row of each id in the files of the parts, one behind the other."""

    def read(self, name: str, rows: npt.NDArray[Any]) -> Tensor:
        """Return some rows of an attribute."""
        if name not in self._files:
            file, topology, parts = self.names[name], self._partition._topology, self._parts()
            files = [part._file(f"{file}.npy") for part in parts]
            features, coding = _core.Features(files, topology, starts=self.starts), parts[0].coding(file)
            self._files[name] = features if coding is None else features.decoded(coding.core)
        return torch.from_numpy(self._files[name].gather(rows))

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_files": {}}


class VertexRows(StoredRows):
    """Rows of the vertices of one type."""

    _of_files = MappingProxyType({"x": "features", "y": "labels", "time": "times"} | _SPLITS)

    def __init__(self, partition: VertexPartition, number: int, of: VertexType) -> None:
        self._number, self._type = number, of
        super().__init__(partition)

    def __len__(self) -> int:
        return self._type.n

    def _parts(self) -> Sequence[PartFiles]:
        return of_type(self._partition, self._type.name)

    @property
    def starts(self) -> Ids:
        """First row of each part among the rows of the type, and their number."""
        return self._partition._rows_by_type.starts[self._number]

    def rows_of(self, ids: Ids) -> npt.NDArray[Any]:
        """Return the row of each id in the files of the parts, one behind the other."""
        rows = self._partition._topology.rows_of(vertices_of(ids, self._type, "index"))
        return self._partition._rows_by_type.locate(rows)[1]


class EdgeRows(StoredRows):
    """Rows of the edges of one relation. Their places are looked up, in 8 bytes for each record."""

    _of_files = MappingProxyType({"edge_attr": "edge_features", "time": "times"})

    def __init__(self, partition: VertexPartition, of: EdgeType) -> None:
        self._type = of
        super().__init__(partition)

    def __len__(self) -> int:
        return self._type.num_ids

    def _parts(self) -> Sequence[RelationData]:
        return of_relation(self._partition, self._type.name)

    @property
    def starts(self) -> Ids:
        """First row of each part among the rows of the relation, and their number."""
        return np.cumsum([0, *(each.num_edges for each in self._parts())])

    @cached_property
    def _places(self) -> Ids:
        """Row of each record. The edge against a record has the same features."""
        m = self._type.relation.m
        places = np.full(m, -1)
        for part, first in zip(self._parts(), self.starts, strict=False):
            records = self._type.ids_within(part.edge_ids, self._partition.num_edges or 0) % max(m, 1)
            places[records] = first + np.arange(len(records))
        if m and places.min() < 0:
            raise GraphFormatError(
                f"{shown(self._partition.folder or '')}: record {places.argmin()} of {self._type.name!r} is in no part"
            )
        return places

    def rows_of(self, ids: Ids) -> npt.NDArray[Any]:
        """Return the row of each id in the files of the parts, one behind the other."""
        outside = np.flatnonzero((ids < 0) | (ids >= len(self)))
        if outside.size:
            raise ParameterError(
                f"index: {self._type.name!r} has no edge {ids[outside[0]]}. Ids count within the relation, from 0 to "
                f"{len(self) - 1}"
            )
        return self._places[ids % max(self._type.relation.m, 1)]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_places"}


class PartitionFeatures(FeatureStore):
    """Rows of a partition directory, read-only. See :func:`fastpart.pyg.feature_store`.

    ``groups`` has those of each type and relation, or only None in a graph without types.
    """

    def __init__(self, groups: Mapping[Group, StoredRows]) -> None:
        super().__init__()
        self._groups = dict(groups)

    def _of(self, attr: TensorAttr) -> StoredRows | None:
        rows = self._groups.get(None if None in self._groups else attr.group_name)
        return rows if rows is not None and attr.attr_name in rows.names else None

    def _get_tensor(self, attr: TensorAttr) -> Tensor | None:
        return self._multi_get_tensor([attr])[0]

    def _multi_get_tensor(self, attrs: list[TensorAttr]) -> list[Tensor | None]:
        found: list[Tensor | None] = []
        known: dict[Any, npt.NDArray[Any]] = {}  # loaders ask for all attributes of the same vertices
        for attr in attrs:
            of, key = self._of(attr), (attr.group_name, id(attr.index))
            if of is not None and key not in known:
                known[key] = of.rows_of(_ids_of(attr, len(of)))
            found.append(None if of is None else of.read(attr.attr_name, known[key]))
        return found

    def _get_tensor_size(self, attr: TensorAttr) -> tuple[int, ...] | None:
        of = self._of(attr)
        if of is None:
            return None
        return (len(of), *of.read(attr.attr_name, np.zeros(0, np.uint32)).shape[1:])

    def get_all_tensor_attrs(self) -> list[TensorAttr]:
        """Return one attribute per array that was saved."""
        return [
            TensorAttr(group_name=group, attr_name=name)
            for group, rows in self._groups.items()
            for name in rows.names
        ]

    def _put_tensor(self, tensor: Any, attr: TensorAttr) -> bool:
        raise FastpartError("feature_store: a partition directory is read-only")

    def _remove_tensor(self, attr: TensorAttr) -> bool:
        raise FastpartError("feature_store: a partition directory is read-only")

    def __repr__(self) -> str:
        names = (
            name if group is None else f"{group}: {name}"
            for group, rows in self._groups.items()
            for name in rows.names
        )
        return f"PartitionFeatures({', '.join(names)})"


def _ids_of(attr: TensorAttr, count: int) -> Ids:
    """Return the ids that an attribute asks for, of so many."""
    index = slice(None) if not attr.is_set("index") or attr.index is None else attr.index
    ids = np.arange(count)[index] if isinstance(index, slice) else np.asarray(index)
    ids = np.flatnonzero(ids) if ids.dtype == np.bool_ else ids.astype(np.int64)
    return np.ascontiguousarray(ids.reshape(-1))


def vertices_of(ids: Ids, of: VertexType, name: str) -> Ids:
    """Return the vertices of the graph, given their ids within a type."""
    if not of.name:
        return ids  # the core refuses those that do not exist
    outside = np.flatnonzero((ids < 0) | (ids >= of.n))
    if outside.size:
        raise ParameterError(
            f"{name}: {of.name!r} has no vertex {ids[outside[0]]}. Ids count within the type, from 0 to {of.n - 1}"
        )
    return ids + of.first


def rows_by_group(partition: VertexPartition) -> dict[Group, StoredRows]:
    """Return the rows of each type, and the rows of each relation that has any.

    A graph without types has no group of edges: PyG asks for all attributes of its one group by ids of vertices.
    """
    of_types: dict[Group, StoredRows] = {
        each.name or None: VertexRows(partition, number, each)
        for number, each in enumerate(vertex_types(partition))
    }
    named = edge_types(partition) if partition.is_typed else ()
    of_relations = {key_of(each): EdgeRows(partition, each) for each in named}
    return of_types | {key: rows for key, rows in of_relations.items() if rows.names}


class InEdges:
    """The in-edges of one relation, or of its reverse. Ids count within the types of its ends.

    Attributes
    ----------
    size : tuple of int
        Numbers of vertices that sources and targets may be.
    """

    def __init__(self, partition: VertexPartition, of: EdgeType) -> None:
        types = {each.name: each.n for each in vertex_types(partition)}
        self._partition, self._type = partition, of
        self.size = types[of.source], types[of.target]

    def by_target(self) -> tuple[Ids, Ids]:
        """Return ``indptr`` of the targets, and the source of each in-edge."""
        degrees = np.zeros(self.size[1], np.int64)
        for part in self._partition.parts:
            part.check_assignment(self._partition.assignment, self._partition.loads[part.index])
            ids, counts, _ = in_edges_of(part, rows_of_relation(part, self._type.name))
            degrees[ids] = counts
        indptr = np.concatenate(([0], np.cumsum(degrees)))
        sources = np.empty(indptr[-1], np.int64)
        for part in self._partition.parts:
            ids, counts, found = in_edges_of(part, rows_of_relation(part, self._type.name))
            shift = np.repeat(indptr[ids] - (np.cumsum(counts) - counts), counts)
            sources[np.arange(len(found)) + shift] = found
        return indptr, sources


class PartitionEdges(GraphStore):
    """The in-edges of a partition directory, read-only. See :func:`fastpart.pyg.graph_store`.

    ``edges`` has those of each relation, or only None in a graph without types.
    """

    def __init__(self, edges: Mapping[EdgeKey | None, InEdges]) -> None:
        super().__init__()
        self._edges = dict(edges)

    def _get_edge_index(self, attr: EdgeAttr) -> tuple[Tensor, Tensor] | None:
        edges = self._edges.get(None if None in self._edges else attr.edge_type)
        if edges is None or attr.layout == EdgeLayout.CSR:
            return None
        indptr, sources = edges.by_target()
        csc = attr.layout == EdgeLayout.CSC
        ends = indptr if csc else np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        return torch.from_numpy(sources), torch.from_numpy(ends)

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """Return the layouts that there are: COO and CSC, both sorted by target."""
        return [
            EdgeAttr(key, layout, is_sorted=True, size=edges.size)
            for key, edges in self._edges.items()
            for layout in ("coo", "csc")
        ]

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        raise FastpartError("graph_store: a partition directory is read-only")

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        raise FastpartError("graph_store: a partition directory is read-only")

    def __repr__(self) -> str:
        if None in self._edges:
            return f"PartitionEdges({self._edges[None].size[1]} vertices)"
        return f"PartitionEdges({', '.join(map(str, self._edges))})"


def edges_by_relation(partition: VertexPartition) -> dict[EdgeKey | None, InEdges]:
    """Return the in-edges of each relation."""
    return {key_of(each) if each.name else None: InEdges(partition, each) for each in edge_types(partition)}
