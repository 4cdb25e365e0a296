"""The parts of a partition directory. Arrays are mapped on first access."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar, overload

import numpy as np

from ..core import parameters
from ..core.pairs import among
from ..core.parameters import shown
from ..core.protocols import facts
from ..errors import GraphFormatError, ParameterError
from ..graphs.types import EdgeType, TypedRanges, VertexType
from .part_files import Array, Ids, LocalIds
from .part_rows import PART as PART
from .part_rows import PartData as PartData
from .part_rows import RelationData, TypeCounts, TypeData, count_in, typed_of
from .part_rows import part_name as part_name

Rows = TypeVar("Rows", TypeData, RelationData)


class VertexPartData(PartData):
    """One part of a vertex partition: its inner vertices, their in-edges, and the sources of these, the halo.

    Attributes
    ----------
    halo_sizes : tuple of int
        Halo vertices at one hop and at two hops.
    types : tuple of VertexType or None
        The types of vertices of a typed graph.
    edge_types : tuple of EdgeType or None
        Its relations, and then the reverse ones that are relations of their own.

    Examples
    --------
    >>> import fastpart as fp, numpy as np, tempfile
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> path_of_four = np.array([[0, 1], [1, 2], [2, 3]])
    >>> stored = fp.VertexPartition([0, 0, 1, 1], k=2).save(folder, graph=path_of_four, labels=[5, 6, 7, 8])
    >>> part = stored.parts[1]
    >>> part
    <VertexPartData 1: 2 inner and 1 halo vertices, 3 in-edges>
    >>> part.inner, part.halo, part.halo_parts, part.labels
    (array([2, 3]), array([1]), array([0], dtype=int32), array([7, 8]))
    >>> part.halo_rows
    array([1], dtype=int32)
    """

    halo_sizes: tuple[int, int]
    types: tuple[VertexType, ...] | None = None
    edge_types: tuple[EdgeType, ...] | None = None
    _num_pairs: dict[str, int]

    def _take(self, sizes: Mapping[str, Any]) -> None:
        super()._take(sizes)
        one, two = sizes["num_halo"]
        self.halo_sizes = (count_in({"num_halo": one}, "num_halo"), count_in({"num_halo": two}, "num_halo"))
        self.num_halo = sum(self.halo_sizes)
        self.num_rows = count_in(sizes, "num_rows")
        pairs = sizes.get("edge_splits", {})
        if not isinstance(pairs, Mapping) or set(pairs) != set(self._manifest.get("edge_splits", pairs)):
            raise TypeError("edge_splits: expected the number of pairs of each split that the manifest names")
        self._num_pairs = {name: count_in(pairs, name) for name in pairs}
        if self.num_rows not in (self.num_inner, self.num_inner + self.halo_sizes[0]):
            raise ParameterError(
                f"num_rows: {self.num_rows} is not the number of inner vertices, with or without one hop"
            )
        typed = typed_of(self._manifest)
        if typed is not None:
            self.types, self.edge_types = typed.types, typed.edge_types
        self._counts = TypeCounts.of(typed, sizes, (self.num_inner, *self.halo_sizes), self.num_edges)

    @cached_property
    def _ranges(self) -> TypedRanges:
        """The types and relations of the graph. One without types has one of each, whose names are empty."""
        n, m = int(self._manifest["n"]), int(self._manifest["m"])
        return typed_of(self._manifest) or TypedRanges.without_names(n, m, self._manifest["directedness"])

    def _hops(self) -> tuple[int, ...]:
        return self.halo_sizes

    @cached_property
    def vertices(self) -> Ids:
        """Global ids of the local vertices, int64: inner ones ascending, then the halo."""
        vertices = super().vertices
        if not self._counts.are_of_their_types(vertices, self.types or ()):
            raise self._damaged("vertices", "as many vertices of each type as part.json says")
        return vertices

    @property
    def inner(self) -> Ids:
        """Global ids of the inner vertices, ascending."""
        return self.vertices[: self.num_inner]

    def _check_assignment(self, assignment: LocalIds, load: int) -> None:
        """Refuse inner vertices that are not the ``load`` ones that the assignment gives this part."""
        if self.num_inner != load or np.any(assignment[self.inner] != self.index):
            raise GraphFormatError(
                f"{shown(self._root)}: the inner vertices of part {self.index} contradict assignment.npy"
            )

    @property
    def halo(self) -> Ids:
        """Global ids of the halo: one hop ascending, then two hops ascending."""
        return self.vertices[self.num_inner :]

    @cached_property
    def halo_parts(self) -> LocalIds:
        """Part of each halo vertex, int32."""
        owners = self._parts("halo_parts", self.num_halo)
        if np.any(owners == self.index):
            raise self._damaged("halo_parts", f"other parts than part {self.index}")
        return owners

    @cached_property
    def halo_rows(self) -> LocalIds:
        """Row of each halo vertex in its own part, int32: ``parts[halo_parts[i]].inner[halo_rows[i]]`` is ``halo[i]``.

        Schema 3 stores it. In a directory of an earlier schema every row is searched among the inner vertices.
        """
        if self._manifest["schema"] < 3:
            return self._searched_rows()
        rows: LocalIds = self._array("halo_rows", np.int32, (self.num_halo,))
        inner = np.full(int(self._manifest["k"]), self._manifest["n"])  # of parts that lie on other machines
        for owner in self._owners():
            if (self._root / part_name(owner)).is_dir():
                inner[owner] = Parts(VertexPartData, self._root, self._manifest)[owner].num_inner
        if np.any((rows < 0) | (rows >= inner[self.halo_parts])):
            raise self._damaged("halo_rows", "rows of inner vertices of the owners")
        return rows

    def _searched_rows(self) -> LocalIds:
        rows = np.empty(self.num_halo, np.int32)
        for owner in self._owners():
            those = np.flatnonzero(self.halo_parts == owner)
            inner = Parts(VertexPartData, self._root, self._manifest)[owner].inner
            found = np.searchsorted(inner, self.halo[those])
            if not len(inner) or np.any(inner[np.minimum(found, len(inner) - 1)] != self.halo[those]):
                raise GraphFormatError(
                    f"{shown(self._root)}: part {self.index} has halo vertices that part {owner} does not hold"
                )
            rows[those] = found
        rows.flags.writeable = False
        return rows

    @cached_property
    def edge_train(self) -> Ids | None:
        """Pairs to train on, (source, target) by id, whose target is inner. None without edge splits.

        In a graph with types the third column is the number of the relation, and a pair is there once for each.
        """
        return self._pairs("train")

    @cached_property
    def edge_val(self) -> Ids | None:
        """Held-out pairs to validate on, as ``edge_train``."""
        return self._pairs("val")

    @cached_property
    def edge_test(self) -> Ids | None:
        """Held-out pairs to test on, as ``edge_train``."""
        return self._pairs("test")

    @cached_property
    def edge_reverse(self) -> Ids | None:
        """Id of the in-edge in the other direction of each in-edge, -1 if there is none. None without edge splits.

        In a graph with types it is the other edge of the same record.
        """
        return self._edge_numbers("edge_reverse", -1) if self._num_pairs else None

    def _pairs(self, split: str) -> Ids | None:
        """Return the pairs of a split, checked."""
        if split not in self._num_pairs:
            return None
        width = 2 if self.types is None else 3
        pairs: Ids = self._array(f"edge_{split}", np.int64, (self._num_pairs[split], width))
        n = int(self._manifest["n"])
        if width == 3 and not self._are_of_relations(pairs):
            raise self._damaged(f"edge_{split}", "pairs of the types of their relations")
        ends = pairs[:, :2]
        if ends.size and not (0 <= ends.min() <= ends.max() < n and among(ends[:, 1], self.inner).all()):
            raise self._damaged(f"edge_{split}", "pairs of ids whose targets are inner vertices")
        return pairs

    def _are_of_relations(self, pairs: Ids) -> bool:
        """Return whether the third column of pairs has relations, and the ends are of the types of the relations."""
        relations = pairs[:, 2]
        if not len(pairs) or not 0 <= relations.min() <= relations.max() < len(self._ranges.relations):
            return not len(pairs)
        ends = (
            (pairs[:, end], self._ranges.ranges_of(of)[relations])
            for end, of in enumerate(("source", "target"))
        )
        return all(bool(((ids >= of[:, 0]) & (ids < of[:, 1])).all()) for ids, of in ends)

    def _owners(self) -> list[int]:
        """Return the parts that own a halo vertex."""
        return [int(owner) for owner in np.flatnonzero(np.bincount(self.halo_parts))]

    @property
    def num_inner_of_type(self) -> tuple[int, ...] | None:
        """Inner vertices of each of ``types``."""
        return None if self.types is None else self._counts.inner

    @property
    def num_halo_of_type(self) -> tuple[tuple[int, ...], ...] | None:
        """Halo vertices of each of ``types``, at one hop and at two hops."""
        return None if self.types is None else self._counts.halo

    @cached_property
    def relations(self) -> Array | None:
        """Number of the edge type of each in-edge, ascending in each row. uint8, or uint16 beyond 256 types."""
        if self.edge_types is None:
            return None
        dtype = np.uint8 if len(self.edge_types) <= 256 else np.uint16
        relations = self._array("relations", dtype, (self.num_edges,))
        if not self._counts.are_of_rows(relations, self.indptr):
            raise self._damaged("relations", "as many edges of each relation as part.json says, in order")
        return relations

    def _edges_of(self, relation: int) -> Ids:
        return (
            super()._edges_of(relation)
            if self.relations is None
            else np.flatnonzero(self.relations == relation)
        )

    @property
    def _by_type(self) -> list[TypeData]:
        """The rows of the vertices of each type. A graph without types has one."""
        return [TypeData(self, self._counts, *each) for each in enumerate(self._ranges.types)]

    @property
    def _by_relation(self) -> list[RelationData]:
        """The in-edges of each relation. A graph without types has one."""
        return [RelationData(self, self._counts, *each) for each in enumerate(self._ranges.edge_types)]

    def of_type(self, name: str) -> TypeData:
        """Return the vertices of one type.

        Raises
        ------
        ParameterError
            There is no such type, or the graph has no types.
        """
        return self._named("type", name, self.types, self._by_type)

    def of_relation(self, name: str) -> RelationData:
        """Return the in-edges of one relation, or of its reverse, as ``rev_writes``.

        Raises
        ------
        ParameterError
            There is no such relation, or the graph has no types.
        """
        return self._named("relation", name, self.edge_types, self._by_relation)

    def _named(self, what: str, name: str, known: Sequence[Any] | None, rows: list[Rows]) -> Rows:
        if known is None:
            raise ParameterError(f"{shown(self._root)} holds a graph without types")
        names = [each.name for each in known]
        if name not in names:
            raise ParameterError(f"{what}: {name!r} is none of {', '.join(names)}")
        return rows[names.index(name)]

    def _holds_as(self, other: Any) -> bool:
        of_types = () if self.types is None else ("_by_type", "_by_relation")
        return super()._holds_as(other) and all(
            mine._holds_as(others)
            for of in of_types
            for mine, others in zip(getattr(self, of), getattr(other, of), strict=True)
        )


class EdgePartData(PartData):
    """One part of an edge partition: its records, and copies of their vertices. All vertices are inner.

    One copy of each vertex is its root. The other copies, the leaves, send their partial sums to the root and get the
    total back. ``send(j)`` of part i and ``recv(i)`` of part j list the same vertices in the same order.

    Attributes
    ----------
    num_roots, num_send : int
        Numbers of local vertices whose root is here, and of the others.

    Examples
    --------
    >>> import fastpart as fp, numpy as np, tempfile
    >>> folder = tempfile.mkdtemp() + "/parts"
    >>> path_of_three = np.array([[0, 1], [1, 2]])
    >>> stored = fp.EdgePartition([0, 1], k=2).save(folder, graph=path_of_three)
    >>> first, second = stored.parts
    >>> first.vertices, second.vertices
    (array([0, 1]), array([1, 2]))
    >>> first.root, first.send(1), second.recv(0)
    (array([0, 0], dtype=int32), array([], dtype=int32), array([], dtype=int32))
    """

    num_roots: int
    num_send: int

    def _take(self, sizes: Mapping[str, Any]) -> None:
        super()._take(sizes)
        self.num_roots = count_in(sizes, "num_roots")
        self.num_send = count_in(sizes, "num_send")
        if self.num_roots + self.num_send != self.num_inner:
            raise ParameterError(
                f"num_roots, num_send: {self.num_roots} + {self.num_send} is not num_inner, {self.num_inner}"
            )

    @cached_property
    def root(self) -> LocalIds:
        """Part that holds the root of each local vertex, int32."""
        return self._parts("root", self.num_inner)

    def send(self, peer: int) -> LocalIds:
        """Local ids of my leaves whose root is in part ``peer``, ascending by global id."""
        return self._of_peer(*self._send, peer)

    def recv(self, peer: int) -> LocalIds:
        """Local ids of my roots that have a leaf in part ``peer``, ascending by global id."""
        return self._of_peer(*self._recv, peer)

    @cached_property
    def _send(self) -> tuple[Ids, LocalIds]:
        offsets = self._offsets("send_indptr", self._manifest["k"], self.num_send)
        return offsets, self._local_ids("send", self.num_send)

    @cached_property
    def _recv(self) -> tuple[Ids, LocalIds]:
        offsets = self._offsets("recv_indptr", self._manifest["k"], None)
        return offsets, self._local_ids("recv", int(offsets[-1]))

    def _of_peer(self, offsets: Ids, ids: LocalIds, peer: int) -> LocalIds:
        peer = parameters.integer("peer", peer, 0, len(offsets) - 2)
        return ids[offsets[peer] : offsets[peer + 1]]


AnyPart = TypeVar("AnyPart", bound=PartData)


class Parts(Sequence[AnyPart], Generic[AnyPart]):
    """All parts of a directory. Each access opens a part anew, so a part is mapped only while it is in use."""

    def __init__(self, cls: type[AnyPart], folder: Path, manifest: Mapping[str, Any]) -> None:
        self._cls = cls
        self._folder = folder
        self._manifest = manifest

    def __len__(self) -> int:
        return int(self._manifest["k"])

    @overload
    def __getitem__(self, index: int) -> AnyPart: ...
    @overload
    def __getitem__(self, index: slice) -> list[AnyPart]: ...
    def __getitem__(self, index: int | slice) -> AnyPart | list[AnyPart]:
        indices = range(len(self))[index]
        if isinstance(indices, range):
            return [self._cls(self._folder, self._manifest, i) for i in indices]
        return self._cls(self._folder, self._manifest, indices)

    def __repr__(self) -> str:
        return f"<{len(self)} parts of {shown(self._folder)}>"

    def _repr_html_(self) -> str:
        return facts("Parts", {"number": len(self), "folder": shown(self._folder)})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Parts):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return Parts, (self._cls, self._folder.absolute(), self._manifest)


def time_files(parts: Parts[VertexPartData]) -> tuple[list[Path | None], list[Path | None]]:
    """Return the files with times of vertices and of in-edges: one for each part, None where it has none.

    If there are types, one for each type of vertices or of edges in each part.
    """
    of_types = (rows for part in parts for rows in part._by_type)
    of_relations = (rows for part in parts for rows in part._by_relation)
    return [_times_of(rows, "times") for rows in of_types], [
        _times_of(rows, rows._of_times) for rows in of_relations
    ]


def _times_of(rows: TypeData | RelationData, name: str) -> Path | None:
    """Return the file of times, which is checked. None if there are none."""
    return None if rows.times is None else rows._file(f"{name}.npy")
