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
from ..core.parsing import json_object
from ..core.protocols import facts
from ..errors import FastpartError, GraphFormatError, ParameterError
from .part_files import Array, Ids, LocalIds, PartFiles
from .typed_parts import TypedPart
from .vertex_rows import VertexRows

PART = "part.json"


def part_name(index: int) -> str:
    """Return the name of a part's folder."""
    return f"part-{index:05d}"


class PartData(VertexRows):
    """The base of :class:`VertexPartData` and :class:`EdgePartData`.

    Every array is mapped read-only on first use, and checked against ``part.json`` and ``manifest.json``. Features,
    labels and masks that were not saved are None. Local ids are positions in ``vertices``.

    Attributes
    ----------
    index : int
        Number of the part.
    num_inner, num_halo, num_rows, num_edges : int
        Numbers of inner vertices, of halo vertices, of local vertices whose in-edges are here, and of in-edges.
    """

    def __init__(self, root: Path, manifest: Mapping[str, Any], index: int) -> None:
        self.index = index
        self._root = root.resolve()
        self._folder = self._root / part_name(index)
        self._manifest = manifest
        sizes = self._read_sizes()
        try:
            self._take(sizes)
        except (FastpartError, TypeError, LookupError, ValueError) as error:
            what = f"lacks {error}" if isinstance(error, KeyError) else error
            raise GraphFormatError(f"{shown(self._folder / PART)}: {what}") from None
        self._refuse_other_size(PART)

    def _read_sizes(self) -> Mapping[str, Any]:
        file = self._file(PART)
        return json_object(file, file.read_bytes())

    def _take(self, sizes: Mapping[str, Any]) -> None:
        index = _count(sizes, "part")
        if index != self.index:
            raise ParameterError(f"part: {index}, but this is the folder of part {self.index}")
        self.num_inner = _count(sizes, "num_inner")
        self.num_edges = _count(sizes, "num_edges")
        self.num_halo = 0
        self.num_rows = self.num_inner

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__} {self.index}: {self.num_inner} inner and {self.num_halo} halo vertices, "
            f"{self.num_edges} in-edges>"
        )

    def _repr_html_(self) -> str:
        named = {"inner vertices": self.num_inner, "halo vertices": self.num_halo, "in-edges": self.num_edges}
        return facts(f"{type(self).__name__} {self.index}", named | {"folder": shown(self._folder)})

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartData) or type(other) is not type(self):
            return NotImplemented
        return self._folder == other._folder or (self.index == other.index and self._holds_as(other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._root, self._manifest, self.index)

    @property
    def folder(self) -> Path:
        """Folder of the part."""
        return self._folder

    @cached_property
    def vertices(self) -> Ids:
        """Global ids of the local vertices, int64: inner ones ascending, then the halo."""
        return self._vertices((self.num_inner, *self._hops()))

    def _hops(self) -> tuple[int, ...]:
        """Return the numbers of halo vertices of each hop."""
        return ()

    @cached_property
    def degree(self) -> Ids:
        """In-degree of each local vertex in the whole graph, int64."""
        most = int(self._manifest["num_directed_edges"])
        what = f"in-degrees, 0..{most}"
        return self._numbers("degree", (self.num_inner + self.num_halo,), 0, most, what)

    @cached_property
    def indptr(self) -> Ids:
        """Where each row's in-edges begin in ``indices``, int64, of length ``num_rows + 1``."""
        return self._offsets("indptr", self.num_rows, self.num_edges)

    @cached_property
    def indices(self) -> LocalIds:
        """Local id of the source of each in-edge, int32."""
        return self._local_ids("indices", self.num_edges)

    @cached_property
    def edge_ids(self) -> Ids:
        """Global id of each in-edge, int64: record r, or m + r for its opposite direction."""
        return self._edge_numbers("edge_ids", 0)

    @cached_property
    def edge_features(self) -> Array | None:
        """One row per in-edge, in the order of ``edge_ids``."""
        return self._described("edge_features", self.num_edges)

    @cached_property
    def edge_times(self) -> Ids | None:
        """Time of each in-edge, int64, in the order of ``edge_ids``. The smallest number stands for none."""
        return self._times("edge_times", self.num_edges)

    def in_edges(self, local: bool = False) -> tuple[Array, Array, Ids]:
        """Return all in-edges that are stored here.

        Parameters
        ----------
        local : bool
            Local ids (int32) instead of global ones (int64).

        Returns
        -------
        sources, destinations, edge_ids : numpy.ndarray
            Grouped by destination, in the order of the rows.

        Examples
        --------
        >>> import fastpart as fp, numpy as np, tempfile
        >>> folder = tempfile.mkdtemp() + "/parts"
        >>> fp.VertexPartition([0, 0, 1], k=2).save(folder, graph=np.array([[0, 1], [1, 2]]))
        >>> part = fp.open_partition(folder).parts[0]
        >>> part.in_edges()
        (array([1, 0, 2]), array([0, 1, 1]), array([2, 0, 3]))
        """
        counts = np.diff(self.indptr)
        destinations = np.repeat(np.arange(self.num_rows, dtype=np.int32), counts)
        if local:
            return self.indices, destinations, self.edge_ids
        return self.vertices[self.indices], self.vertices[destinations], self.edge_ids

    def in_neighbours(self, v: int, local: bool = False) -> Array:
        """Return the sources of the in-edges of one vertex, one for each edge, in the order of the records.

        Parameters
        ----------
        v : int
            A vertex that has a row here: an inner vertex or, with two hops, a vertex of the 1-hop halo.
        local : bool
            ``v`` and the result are local ids instead of global ones.

        Raises
        ------
        ParameterError
            The in-edges of ``v`` are not here.

        Examples
        --------
        >>> import fastpart as fp, numpy as np, tempfile
        >>> folder = tempfile.mkdtemp() + "/parts"
        >>> fp.VertexPartition([0, 0, 1], k=2).save(folder, graph=np.array([[0, 1], [1, 2]]))
        >>> fp.open_partition(folder).parts[0].in_neighbours(1)
        array([0, 2])
        """
        row = parameters.integer("v", v, 0, self.num_rows - 1) if local else self._row(v)
        sources = self.indices[self.indptr[row] : self.indptr[row + 1]]
        return sources if local else self.vertices[sources]

    def _row(self, v: int) -> int:
        number = parameters.integer("v", v, 0, 2**63 - 1)
        for start, stop in ((0, self.num_inner), (self.num_inner, self.num_rows)):
            row = start + int(np.searchsorted(self.vertices[start:stop], number))
            if row < stop and self.vertices[row] == number:
                return row
        raise ParameterError(f"v: the in-edges of vertex {number} are not in part {self.index}")


class VertexPartData(TypedPart, PartData):
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
    >>> fp.VertexPartition([0, 0, 1, 1], k=2).save(folder, graph=path_of_four, labels=[5, 6, 7, 8])
    >>> part = fp.open_partition(folder).parts[1]
    >>> part
    <VertexPartData 1: 2 inner and 1 halo vertices, 3 in-edges>
    >>> part.inner, part.halo, part.halo_parts, part.labels
    (array([2, 3]), array([1]), array([0], dtype=int32), array([7, 8]))
    >>> part.halo_rows
    array([1], dtype=int32)
    """

    halo_sizes: tuple[int, int]
    _num_pairs: dict[str, int]

    def _take(self, sizes: Mapping[str, Any]) -> None:
        super()._take(sizes)
        one, two = sizes["num_halo"]
        self.halo_sizes = (_count({"num_halo": one}, "num_halo"), _count({"num_halo": two}, "num_halo"))
        self.num_halo = sum(self.halo_sizes)
        self.num_rows = _count(sizes, "num_rows")
        pairs = sizes.get("edge_splits", {})
        if not isinstance(pairs, Mapping) or set(pairs) != set(self._manifest.get("edge_splits", pairs)):
            raise TypeError("edge_splits: expected the number of pairs of each split that the manifest names")
        self._num_pairs = {name: _count(pairs, name) for name in pairs}
        if self.num_rows not in (self.num_inner, self.num_inner + self.halo_sizes[0]):
            raise ParameterError(
                f"num_rows: {self.num_rows} is not the number of inner vertices, with or without one hop"
            )
        self._take_types(sizes)

    def _hops(self) -> tuple[int, ...]:
        return self.halo_sizes

    @cached_property
    def vertices(self) -> Ids:
        """Global ids of the local vertices, int64: inner ones ascending, then the halo."""
        vertices = super().vertices
        self._check_types(vertices)
        return vertices

    @property
    def inner(self) -> Ids:
        """Global ids of the inner vertices, ascending."""
        return self.vertices[: self.num_inner]

    def check_assignment(self, assignment: LocalIds, load: int) -> None:
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

    def _owners(self) -> list[int]:
        """Return the parts that own a halo vertex."""
        return [int(owner) for owner in np.flatnonzero(np.bincount(self.halo_parts))]


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
    >>> fp.EdgePartition([0, 1], k=2).save(folder, graph=path_of_three)
    >>> first, second = fp.open_partition(folder).parts
    >>> first.vertices, second.vertices
    (array([0, 1]), array([1, 2]))
    >>> first.root, first.send(1), second.recv(0)
    (array([0, 0], dtype=int32), array([], dtype=int32), array([], dtype=int32))
    """

    num_roots: int
    num_send: int

    def _take(self, sizes: Mapping[str, Any]) -> None:
        super()._take(sizes)
        self.num_roots = _count(sizes, "num_roots")
        self.num_send = _count(sizes, "num_send")
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
    vertices, edges = [], []
    for part in parts:
        if part.types is None:
            vertices.append(_file_of(part, "times"))
            edges.append(_file_of(part, "edge_times"))
        else:
            vertices += [_file_of(part.of_type(each.name), "times") for each in part.types]
            edges += [_file_of(part.of_relation(each.name), "times") for each in part.edge_types or ()]
    return vertices, edges


def _file_of(data: PartFiles, name: str) -> Path | None:
    """Return the file of an array, which is checked. None if it was not saved."""
    return None if getattr(data, name) is None else data._file(f"{name}.npy")


def _count(sizes: Mapping[str, Any], name: str) -> int:
    return parameters.integer(name, sizes[name], 0, 2**63 - 1)
