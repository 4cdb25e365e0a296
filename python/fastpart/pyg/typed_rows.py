"""Rows and in-edges of a directory with types. Ids count within a type, and within a relation."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..core.parameters import shown
from ..errors import GraphFormatError, ParameterError
from ..export.common import in_edges, inner_edges_of
from ..graphs.types import EdgeType, VertexType
from ..partitions.part_rows import RelationData
from ..partitions.partition import VertexPartition
from ..partitions.parts import VertexPartData
from ..partitions.types import EdgeKey, of_type
from .edges import InEdges
from .features import VertexRows

Ids = npt.NDArray[np.int64]


class RowsOfType(VertexRows):
    """Rows of the vertices of one type."""

    def __init__(self, partition: VertexPartition, number: int, of: VertexType) -> None:
        self._number, self._type = number, of
        super().__init__(partition)

    def __len__(self) -> int:
        return self._type.n

    def _parts(self) -> Any:
        return of_type(self._partition, self._type.name)

    @property
    def starts(self) -> Ids:
        """First row of each part among those of the type, and their number."""
        return self._partition._rows_by_type.starts[self._number]

    def rows_of(self, ids: Ids) -> npt.NDArray[Any]:
        """Return the row of each id in the files of the parts, one behind the other."""
        rows = self._partition._topology.rows_of(vertices_of(ids, self._type, "index"))
        return self._partition._rows_by_type.locate(rows)[1]


class RowsOfRelation(VertexRows):
    """Rows of the edges of one relation. Their places are looked up, in 8 bytes for each record."""

    _of_files: ClassVar = {"edge_attr": "edge_features", "time": "times"}

    def __init__(self, partition: VertexPartition, of: EdgeType) -> None:
        self._type = of
        super().__init__(partition)

    def __len__(self) -> int:
        return self._type.num_ids

    def _parts(self) -> list[RelationData]:
        return [part.of_relation(self._type.name) for part in self._partition.parts]

    @property
    def starts(self) -> Ids:
        """First row of each part among those of the relation, and their number."""
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


class EdgesOfRelation(InEdges):
    """The in-edges of one relation, or of its reverse."""

    def __init__(self, partition: VertexPartition, of: EdgeType, ends: tuple[VertexType, VertexType]) -> None:
        super().__init__(partition)
        self._type, self._ends, self.size = of, ends, (ends[0].n, ends[1].n)

    def targets_of(self, part: VertexPartData) -> tuple[Ids, Ids]:
        """Return the inner vertices of the target's type, and how many in-edges each has."""
        targets = part.of_type(self._type.target)
        owners = np.searchsorted(part.indptr, self._edges_of(part), side="right") - 1
        places = _within(part, owners - targets.first_inner, targets.num_inner)
        counts = np.bincount(places, minlength=targets.num_inner)
        return targets.inner - self._ends[1].first, counts

    def sources_of(self, part: VertexPartData) -> Ids:
        """Return the sources of these in-edges, by target."""
        sources = part.vertices[part.indices[self._edges_of(part)]]
        return _within(part, sources - self._ends[0].first, self.size[0])

    def _edges_of(self, part: VertexPartData) -> Ids:
        relation = part.of_relation(self._type.name)
        return relation.edges[: inner_edges_of(relation, in_edges(part))]


def _within(part: VertexPartData, ids: Ids, count: int) -> Ids:
    """Return ids of the ends of edges within their type, which are below ``count``."""
    if len(ids) and not 0 <= ids.min() <= ids.max() < count:
        raise part._damaged("relations", "edges whose ends are of the types of their relations")
    return ids


def vertices_of(ids: Ids, of: VertexType, name: str) -> Ids:
    """Return the vertices of the graph, given their ids within a type."""
    outside = np.flatnonzero((ids < 0) | (ids >= of.n))
    if outside.size:
        raise ParameterError(
            f"{name}: {of.name!r} has no vertex {ids[outside[0]]}. Ids count within the type, from 0 to {of.n - 1}"
        )
    return ids + of.first


def rows_by_group(partition: VertexPartition) -> dict[str | EdgeKey, VertexRows]:
    """Return the rows of each type, and those of each relation that has any."""
    first = partition.parts[0]
    groups: dict[str | EdgeKey, VertexRows] = {
        each.name: RowsOfType(partition, number, each) for number, each in enumerate(first.types or ())
    }
    for each in first.edge_types or ():
        rows = RowsOfRelation(partition, each)
        if rows.names:
            groups[each.source, each.name, each.target] = rows
    return groups


def edges_by_relation(partition: VertexPartition) -> dict[EdgeKey, InEdges]:
    """Return the in-edges of each relation."""
    first = partition.parts[0]
    types = {each.name: each for each in first.types or ()}
    return {
        (each.source, each.name, each.target): EdgesOfRelation(
            partition, each, (types[each.source], types[each.target])
        )
        for each in first.edge_types or ()
    }
