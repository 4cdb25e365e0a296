"""Rows of a part: of the vertices of each type, and of the in-edges of each relation.

A graph without types has one type and one relation, whose names are empty. Their rows lie in the folder of the part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..core.inputs import EDGE_LABEL_SPLITS, EDGE_LABELS, known_of
from ..core.parameters import shown
from ..core.parsing import json_object
from ..core.protocols import facts
from ..errors import FastpartError, GraphFormatError, ParameterError
from ..graphs.types import EdgeType, TypedRanges, VertexType
from .part_files import Array, Ids, LocalIds, PartFiles

PART = "part.json"


def part_name(index: int) -> str:
    """Return the name of a part's folder."""
    return f"part-{index:05d}"


OF_VERTICES = ("features", "halo_features", "labels", "splits", "times")
"""Entries of a type in the manifest, which are those of a plain graph at its top."""

OF_EDGES = ("edge_features", EDGE_LABELS, EDGE_LABEL_SPLITS, "times")
"""Entries of a relation in the manifest."""


def typed_of(manifest: Mapping[str, Any]) -> TypedRanges | None:
    """Return the types and relations that a manifest lists, checked. None for a plain graph."""
    if not {"types", "relations"} & set(manifest):
        return None
    n, m, directedness = (manifest[name] for name in ("n", "m", "directedness"))
    return TypedRanges.of(manifest["types"], manifest["relations"], n, m, directedness)


@dataclass(frozen=True)
class TypeCounts:
    """Numbers of the vertices and edges of each type in a part.

    Attributes
    ----------
    inner : tuple of int
        Inner vertices of each type.
    halo : tuple of tuple of int
        Halo vertices of each type, hop by hop.
    edges : tuple of int
        In-edges of each relation.
    """

    inner: tuple[int, ...]
    halo: tuple[tuple[int, ...], ...]
    edges: tuple[int, ...]

    @classmethod
    def of(
        cls, typed: TypedRanges | None, sizes: Mapping[str, Any], hops: Sequence[int], edges: int
    ) -> TypeCounts:
        """Return what ``part.json`` lists. It must add up to the vertices of ``hops``, and to ``edges``."""
        if typed is None:
            return cls((hops[0],), tuple((count,) for count in hops[1:]), (edges,))
        types, halo = len(typed.types), sizes["num_halo_of_type"]
        if not isinstance(halo, list) or len(halo) != len(hops) - 1:
            raise TypeError(f"num_halo_of_type: expected a list of {len(hops) - 1} lists")
        return cls(
            _counts("num_inner_of_type", sizes["num_inner_of_type"], types, hops[0]),
            tuple(
                _counts("num_halo_of_type", *each)
                for each in zip(halo, [types] * len(halo), hops[1:], strict=True)
            ),
            _counts("num_edges_of_relation", sizes["num_edges_of_relation"], len(typed.edge_types), edges),
        )

    def spans(self, number: int) -> list[tuple[int, int]]:
        """Return the ranges of local ids of a type: of the inner vertices, and of each hop of the halo."""
        spans, start = [], 0
        for counts in (self.inner, *self.halo):
            first = start + sum(counts[:number])
            spans.append((first, first + counts[number]))
            start += sum(counts)
        return spans

    def are_of_their_types(self, vertices: Ids, types: Sequence[VertexType]) -> bool:
        """Return whether the vertices of each hop, which ascend, are those of the types that are counted."""
        return all(
            start == stop or (int(vertices[start]) in each.range and int(vertices[stop - 1]) in each.range)
            for number, each in enumerate(types)
            for start, stop in self.spans(number)
        )

    def are_of_rows(self, relations: Array, indptr: Ids) -> bool:
        """Return whether there are as many edges of each relation as are counted, ascending in each row."""
        if not np.array_equal(np.bincount(relations, minlength=len(self.edges)), self.edges):
            return False
        falls = np.flatnonzero(relations[1:] < relations[:-1]) + 1
        return bool(np.all(indptr[np.searchsorted(indptr, falls)] == falls)) if len(falls) else True


def _counts(name: str, given: Any, length: int, total: int) -> tuple[int, ...]:
    if not isinstance(given, list) or len(given) != length:
        raise TypeError(f"{name}: expected a list of {length} numbers")
    counts = tuple(parameters.integer(name, count, 0, 2**63 - 1) for count in given)
    if sum(counts) != total:
        raise ParameterError(f"{name}: {sum(counts)} together, expected {total}")
    return counts


class VertexRows(PartFiles):
    """One row per inner vertex of a part, or of one type of them. Data that were not saved are None."""

    first_inner: int = 0
    """Local id of the first of these vertices in the part."""

    @cached_property
    def features(self) -> Array | None:
        """One row per inner vertex. Coded ones are decoded, all of the part."""
        return self._decoded("features", self.num_inner)

    @cached_property
    def halo_features(self) -> Array | None:
        """One row per halo vertex. None unless saved with ``halo_features=True``."""
        return self._decoded("halo_features", self.num_halo)

    @cached_property
    def labels(self) -> Array | None:
        """Class of each inner vertex, int64, -1 = unlabelled, or 0 and 1 as uint8 of shape (num_inner, classes).

        Targets of a regression are float32, of shape (num_inner,) or (num_inner, width), NaN = none.
        """
        return self._labels("labels", self.num_inner)

    @cached_property
    def times(self) -> Ids | None:
        """Time of each inner vertex, int64. The smallest number stands for none."""
        return self._times("times", self.num_inner)

    @cached_property
    def train(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the inner vertices to train on."""
        return self._mask("train", self.num_inner)

    @cached_property
    def val(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the inner vertices to validate on."""
        return self._mask("val", self.num_inner)

    @cached_property
    def test(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the inner vertices to test on."""
        return self._mask("test", self.num_inner)

    def labelled(self, split: str) -> npt.NDArray[np.bool_] | None:
        """Return the mask of the inner vertices of a split that have a label. Without labels, all have."""
        mask: npt.NDArray[np.bool_] | None = getattr(self, split)
        return mask if mask is None or self.labels is None else mask & known_of(self.labels)


class EdgeRows(PartFiles):
    """One row per in-edge of a part, or of one relation in it. Data that were not saved are None."""

    @cached_property
    def edge_features(self) -> Array | None:
        """One row per in-edge, in the order of ``edge_ids``. Coded ones are decoded, all of the part."""
        return self._decoded("edge_features", self.num_edges)

    def edge_features_of(self, places: Ids) -> Array | None:
        """Return the features of some in-edges, given their places. Only theirs are decoded. None without any."""
        rows, coding = self._described("edge_features", self.num_edges), self.coding("edge_features")
        if rows is None or coding is None:
            return None if rows is None else rows[places]
        return coding.decode(rows[places])

    @cached_property
    def edge_labels(self) -> Array | None:
        """Label of each in-edge, in the order of ``edge_ids``: that of its record, in the types of ``labels``."""
        return self._labels(EDGE_LABELS, self.num_edges)

    @cached_property
    def edge_label_train(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the in-edges whose records are to train on."""
        return self._edge_mask("train")

    @cached_property
    def edge_label_val(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the in-edges whose records are to validate on."""
        return self._edge_mask("val")

    @cached_property
    def edge_label_test(self) -> npt.NDArray[np.bool_] | None:
        """Mask of the in-edges whose records are to test on."""
        return self._edge_mask("test")

    def _edge_mask(self, split: str) -> npt.NDArray[np.bool_] | None:
        return self._mask(split, self.num_edges, EDGE_LABEL_SPLITS, "edge_label_")


class PartData(VertexRows, EdgeRows):
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
        index = count_in(sizes, "part")
        if index != self.index:
            raise ParameterError(f"part: {index}, but this is the folder of part {self.index}")
        self.num_inner = count_in(sizes, "num_inner")
        self.num_edges = count_in(sizes, "num_edges")
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
    def edge_times(self) -> Ids | None:
        """Time of each in-edge, int64, in the order of ``edge_ids``. The smallest number stands for none."""
        return self._times("edge_times", self.num_edges)

    def _edges_of(self, relation: int) -> Ids:
        """Return the places of the in-edges of a relation. Here all are of the one that there is."""
        return np.arange(self.num_edges)

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
        >>> stored = fp.VertexPartition([0, 0, 1], k=2).save(folder, graph=np.array([[0, 1], [1, 2]]))
        >>> part = stored.parts[0]
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
        >>> stored = fp.VertexPartition([0, 0, 1], k=2).save(folder, graph=np.array([[0, 1], [1, 2]]))
        >>> stored.parts[0].in_neighbours(1)
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


def count_in(sizes: Mapping[str, Any], name: str) -> int:
    """Return a count of ``part.json``, checked."""
    return parameters.integer(name, sizes[name], 0, 2**63 - 1)


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
    spans : list of tuple of int
        Local ids of its vertices in the part: of the inner ones, and of each hop of the halo.
    """

    def __init__(self, part: PartData, counts: TypeCounts, number: int, of: VertexType) -> None:
        self.type, self._part, self.spans = of, part, counts.spans(number)
        self._root, self._folder, self._manifest = part._root, part._folder, part._manifest
        if of.name:
            self._folder, self._above = part._folder / "types" / of.name, f"types/{of.name}/"
            self._manifest = {**part._manifest, **_entry(part._manifest["types"][number], OF_VERTICES)}
        self.first_inner = self.spans[0][0]
        (self.num_inner, *halo) = (stop - start for start, stop in self.spans)
        self.num_halo, self.num_edges = sum(halo), 0

    def __repr__(self) -> str:
        return f"<TypeData {self.type.name}: {self.num_inner} inner and {self.num_halo} halo vertices>"

    @property
    def inner(self) -> Ids:
        """Ids of its inner vertices in the graph, ascending."""
        return self._part.vertices[slice(*self.spans[0])]

    @property
    def halo(self) -> Ids:
        """Ids of its halo vertices in the graph: of one hop ascending, then of two hops ascending."""
        return np.concatenate([self._part.vertices[slice(*span)] for span in self.spans[1:]])


class RelationData(EdgeRows):
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

    _of_times = "times"

    def __init__(self, part: PartData, counts: TypeCounts, number: int, of: EdgeType) -> None:
        self.type, self.number, self._part = of, number, part
        self._root, self._folder, self._manifest = part._root, part._folder, part._manifest
        if of.name:
            self._folder, self._above = part._folder / "relations" / of.name, f"relations/{of.relation.name}/"
            entries = part._manifest["relations"]
            place = [each["name"] for each in entries].index(of.relation.name)
            self._manifest = {**part._manifest, **_entry(entries[place], OF_EDGES)}
        else:
            self._of_times = "edge_times"
        self.num_inner, self.num_halo, self.num_edges = 0, 0, counts.edges[number]

    def __repr__(self) -> str:
        return f"<RelationData {self.type.name}: {self.num_edges} in-edges>"

    @cached_property
    def edges(self) -> Ids:
        """Places of its in-edges among those of the part, ascending."""
        return self._part._edges_of(self.number)

    @property
    def _chosen(self) -> Ids | slice:
        """Index of its in-edges among the in-edges of the part. A plain graph has one relation, which has all."""
        return self.edges if self.type.name else slice(None)

    def before(self, places: Any) -> Any:
        """Return how many of its in-edges lie before some places among those of the part."""
        return np.searchsorted(self.edges, places) if self.type.name else places

    @property
    def num_of_inner(self) -> int:
        """Number of its in-edges that lead to inner vertices. They come before the in-edges of the halo."""
        return int(self.before(self._part.indptr[self._part.num_inner]))

    @property
    def of_inner(self) -> Ids | slice:
        """Index of its in-edges that lead to inner vertices, among the in-edges of the part."""
        return self.edges[: self.num_of_inner] if self.type.name else slice(self.num_of_inner)

    @cached_property
    def edge_ids(self) -> Ids:
        """Ids of its in-edges in the graph, in the order of ``edges``."""
        if not self.type.name:
            return self._part.edge_ids
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
    def times(self) -> Ids | None:
        """Time of each in-edge, int64, in the order of ``edges``. The smallest number stands for none."""
        return self._times(self._of_times, self.num_edges)

    def in_edges(self, local: bool = False) -> tuple[Array, Array, Ids]:
        """Return sources, destinations and ids of its in-edges, as ``in_edges`` of the part does for all."""
        sources, destinations, _ = self._part.in_edges(local)
        return sources[self._chosen], destinations[self._chosen], self.edge_ids


def _entry(entry: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: entry[name] for name in names if name in entry}
