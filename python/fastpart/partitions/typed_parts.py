"""Types and relations in a part of a typed graph: their vertices, edges and rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import parameters
from ..core.parameters import shown
from ..errors import ParameterError
from ..graphs.types import EdgeType, TypedRanges, VertexType
from .part_files import Array, Ids, PartFiles
from .vertex_rows import VertexRows

OF_VERTICES = ("features", "halo_features", "labels", "splits", "times")
"""Entries of a type in the manifest, which are those of a plain graph at its top."""

OF_EDGES = ("edge_features", "times")
"""Entries of a relation in the manifest."""


def typed_of(manifest: Mapping[str, Any]) -> TypedRanges | None:
    """Return the types and relations that a manifest lists, checked. None for a plain graph."""
    if not {"types", "relations"} & set(manifest):
        return None
    n, m, directedness = (manifest[name] for name in ("n", "m", "directedness"))
    return TypedRanges.of(manifest["types"], manifest["relations"], n, m, directedness)


class TypeCounts:
    """How many vertices and edges of a part are of each type, as ``part.json`` lists them."""

    def __init__(self, typed: TypedRanges, sizes: Mapping[str, Any], hops: Sequence[int], edges: int) -> None:
        types, relations = len(typed.types), len(typed.edge_types)
        self.inner = _counts("num_inner_of_type", sizes["num_inner_of_type"], types, hops[0])
        halo = sizes["num_halo_of_type"]
        if not isinstance(halo, list) or len(halo) != len(hops) - 1:
            raise TypeError(f"num_halo_of_type: expected a list of {len(hops) - 1} lists")
        self.halo = tuple(
            _counts("num_halo_of_type", each, types, total)
            for each, total in zip(halo, hops[1:], strict=True)
        )
        self.edges = _counts("num_edges_of_relation", sizes["num_edges_of_relation"], relations, edges)

    def spans(self, number: int) -> list[tuple[int, int]]:
        """Return the local ids of a type: those of the inner vertices, and those of each hop of the halo."""
        spans, start = [], 0
        for counts in (self.inner, *self.halo):
            first = start + sum(counts[:number])
            spans.append((first, first + counts[number]))
            start += sum(counts)
        return spans


def _counts(name: str, given: Any, length: int, total: int) -> tuple[int, ...]:
    if not isinstance(given, list) or len(given) != length:
        raise TypeError(f"{name}: expected a list of {length} numbers")
    counts = tuple(parameters.integer(name, count, 0, 2**63 - 1) for count in given)
    if sum(counts) != total:
        raise ParameterError(f"{name}: {sum(counts)} together, expected {total}")
    return counts


def are_of_their_types(vertices: Ids, types: Sequence[VertexType], counts: TypeCounts) -> bool:
    """Return whether the vertices of each hop, which ascend, are those of the types that are counted."""
    return all(
        start == stop or (int(vertices[start]) in each.range and int(vertices[stop - 1]) in each.range)
        for number, each in enumerate(types)
        for start, stop in counts.spans(number)
    )


def are_of_rows(relations: Array, indptr: Ids, counts: TypeCounts) -> bool:
    """Return whether there are as many edges of each relation as are counted, and whether they ascend in each row."""
    if not np.array_equal(np.bincount(relations, minlength=len(counts.edges)), counts.edges):
        return False
    falls = np.flatnonzero(relations[1:] < relations[:-1]) + 1
    return bool(np.all(indptr[np.searchsorted(indptr, falls)] == falls)) if len(falls) else True


class TypeData(VertexRows):
    """The vertices of one type in a part, with their features, labels, splits and times.

    Attributes
    ----------
    type : VertexType
        Its name, and the range of its vertices in the graph.
    num_inner, num_halo : int
        Numbers of its inner and halo vertices.
    first_inner : int
        Local id of its first inner vertex in the part.
    """

    def __init__(self, part: TypedPart, counts: TypeCounts, number: int, of: VertexType) -> None:
        self.type, self._part, self._spans = of, part, counts.spans(number)
        self._root, self._folder = part._root, part._folder / "types" / of.name
        self._above = f"types/{of.name}/"
        self._manifest = {**part._manifest, **_entry(part._manifest["types"][number], OF_VERTICES)}
        self.first_inner = self._spans[0][0]
        (self.num_inner, *halo) = (stop - start for start, stop in self._spans)
        self.num_halo, self.num_edges = sum(halo), 0

    def __repr__(self) -> str:
        return f"<TypeData {self.type.name}: {self.num_inner} inner and {self.num_halo} halo vertices>"

    @property
    def inner(self) -> Ids:
        """Ids of its inner vertices in the graph, ascending."""
        return self._part.vertices[slice(*self._spans[0])]

    @property
    def halo(self) -> Ids:
        """Ids of its halo vertices in the graph: of one hop ascending, then of two hops ascending."""
        return np.concatenate([self._part.vertices[slice(*span)] for span in self._spans[1:]])


class RelationData(PartFiles):
    """The in-edges of one relation, or of its reverse, in a part.

    Attributes
    ----------
    type : EdgeType
        Its name, its ends, and its records.
    number : int
        Its number in ``relations`` of the part.
    num_edges : int
        Number of its in-edges here.
    """

    def __init__(self, part: TypedPart, counts: TypeCounts, number: int, of: EdgeType) -> None:
        self.type, self.number, self._part = of, number, part
        self._root, self._folder = part._root, part._folder / "relations" / of.name
        place = [each["name"] for each in part._manifest["relations"]].index(of.relation.name)
        self._manifest = {**part._manifest, **_entry(part._manifest["relations"][place], OF_EDGES)}
        self.num_inner, self.num_halo, self.num_edges = 0, 0, counts.edges[number]

    def __repr__(self) -> str:
        return f"<RelationData {self.type.name}: {self.num_edges} in-edges>"

    @cached_property
    def edges(self) -> Ids:
        """Places of its in-edges among those of the part, ascending."""
        relations = self._part.relations
        assert relations is not None
        return np.flatnonzero(relations == self.number)

    @cached_property
    def edge_ids(self) -> Ids:
        """Ids of its in-edges in the graph, in the order of ``edges``."""
        ids, m, records = self._part.edge_ids[self.edges], int(self._manifest["m"]), self.type.relation.range
        second = ids >= m  # against the direction of the record
        against = second.all() if self.type.reversed else not second.any()
        known = ids - m * second
        inside = not len(ids) or records.start <= known.min() <= known.max() < records.stop
        if not inside or not (against or self.type.relation.reverse == "merged"):
            raise self._part._damaged(
                "edge_ids", f"ids of edges of {self.type.name!r} where relations.npy says so"
            )
        return ids

    @cached_property
    def edge_features(self) -> Array | None:
        """One row per in-edge, in the order of ``edges``."""
        return self._described("edge_features", self.num_edges)

    @cached_property
    def times(self) -> Ids | None:
        """Time of each in-edge, int64, in the order of ``edges``. The smallest number stands for none."""
        return self._times("times", self.num_edges)

    def in_edges(self, local: bool = False) -> tuple[Array, Array, Ids]:
        """Return sources, destinations and ids of its in-edges, as ``in_edges`` of the part does for all."""
        sources, destinations, _ = self._part.in_edges(local)
        return sources[self.edges], destinations[self.edges], self.edge_ids


def _entry(entry: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: entry[name] for name in names if name in entry}


class TypedPart(PartFiles):
    """What a part knows of types and relations, where the graph has them.

    Attributes
    ----------
    types : tuple of VertexType or None
        The types of the vertices.
    edge_types : tuple of EdgeType or None
        The relations, and then the reverse ones that are relations of their own.
    """

    types: tuple[VertexType, ...] | None = None
    edge_types: tuple[EdgeType, ...] | None = None
    halo_sizes: tuple[int, int]
    _counts: TypeCounts | None = None
    if TYPE_CHECKING:

        @cached_property
        def vertices(self) -> Ids: ...  # noqa: D102
        @cached_property
        def indptr(self) -> Ids: ...  # noqa: D102
        @cached_property
        def edge_ids(self) -> Ids: ...  # noqa: D102
        def in_edges(self, local: bool = False) -> tuple[Array, Array, Ids]: ...  # noqa: D102

    def _take_types(self, sizes: Mapping[str, Any]) -> None:
        typed = typed_of(self._manifest)
        if typed is not None:
            self.types, self.edge_types = typed.types, typed.edge_types
            self._counts = TypeCounts(typed, sizes, (self.num_inner, *self.halo_sizes), self.num_edges)

    def _check_types(self, vertices: Ids) -> None:
        if self.types is not None and not are_of_their_types(vertices, self.types, self._known()):
            raise self._damaged("vertices", "as many vertices of each type as part.json says")

    def _known(self) -> TypeCounts:
        if self._counts is None:
            raise ParameterError(f"{shown(self._root)} holds a graph without types")
        return self._counts

    def _are_of_relations(self, pairs: Ids) -> bool:
        """Return whether pairs have relations, in the third column, and ends of the types of these."""
        typed = typed_of(self._manifest)
        assert typed is not None
        relations = pairs[:, 2]
        if not len(pairs) or not 0 <= relations.min() <= relations.max() < len(typed.relations):
            return not len(pairs)
        ends = (
            (pairs[:, end], typed.ranges_of(of)[relations]) for end, of in enumerate(("source", "target"))
        )
        return all(bool(((ids >= of[:, 0]) & (ids < of[:, 1])).all()) for ids, of in ends)

    @property
    def num_inner_of_type(self) -> tuple[int, ...] | None:
        """Inner vertices of each of ``types``."""
        return None if self._counts is None else self._counts.inner

    @property
    def num_halo_of_type(self) -> tuple[tuple[int, ...], ...] | None:
        """Halo vertices of each of ``types``, at one hop and at two hops."""
        return None if self._counts is None else self._counts.halo

    @cached_property
    def relations(self) -> Array | None:
        """Number of the edge type of each in-edge, ascending in each row. uint8, or uint16 beyond 256 types."""
        if self.edge_types is None:
            return None
        dtype = np.uint8 if len(self.edge_types) <= 256 else np.uint16
        relations = self._array("relations", dtype, (self.num_edges,))
        if not are_of_rows(relations, self.indptr, self._known()):
            raise self._damaged("relations", "as many edges of each relation as part.json says, in order")
        return relations

    def of_type(self, name: str) -> TypeData:
        """Return the vertices of one type.

        Raises
        ------
        ParameterError
            There is no such type, or the graph has no types.
        """
        counts, types = self._known(), self.types or ()
        number = _place("type", name, [each.name for each in types])
        return TypeData(self, counts, number, types[number])

    def of_relation(self, name: str) -> RelationData:
        """Return the in-edges of one relation, or of its reverse, as ``rev_writes``.

        Raises
        ------
        ParameterError
            There is no such relation, or the graph has no types.
        """
        counts, types = self._known(), self.edge_types or ()
        number = _place("relation", name, [each.name for each in types])
        return RelationData(self, counts, number, types[number])

    def _holds_as(self, other: Any) -> bool:
        return super()._holds_as(other) and all(
            getattr(self, of)(each.name)._holds_as(getattr(other, of)(each.name))
            for of, types in (("of_type", self.types), ("of_relation", self.edge_types))
            for each in types or ()
        )


def _place(what: str, name: str, names: list[str]) -> int:
    if name not in names:
        raise ParameterError(f"{what}: {name!r} is none of {', '.join(names)}")
    return names.index(name)
