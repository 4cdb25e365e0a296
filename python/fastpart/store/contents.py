"""The data that a partition directory holds beside the partition, opened and checked before any work.

Each array has a place in the directory, and a rule that says which rows of its source a part holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.ids import Ids, of_name
from ..core.inputs import (
    EDGE_LABEL_SPLITS,
    EDGE_LABELS,
    EDGE_MASKS,
    SPLITS,
    labels_of,
    labels_of_records,
    match_records,
    splits_of,
    splits_of_records,
)
from ..core.options import RunOptions
from ..core.outputs import held
from ..core.parsing import named
from ..core.rows import Rows, rows_of, rows_of_records, rows_of_vertices
from ..errors import FastpartError, ParameterError
from ..graphs.given_splits import Pairs
from ..graphs.graph_directory import embedded_beside
from ..graphs.types import EdgeType, TypedRanges
from ..partitions.coding import Features, stored_features
from ..partitions.part_rows import TypeCounts
from ..partitions.parts import part_name
from ..partitions.saved import SavedData
from .edge_splits import held_out_from, held_out_of


@dataclass(frozen=True)
class Data:
    """The rows of a type of vertices, or of a relation."""

    features: Features | None = None
    labels: Rows | None = None
    masks: Mapping[str, Rows] = field(default_factory=dict)
    times: Rows | None = None


@dataclass(frozen=True)
class Contents:
    """Rows to distribute over the parts, one per vertex, or one per record.

    A graph without types has one of each, whose names are empty.
    """

    halo_hops: int
    halo_features: bool
    of_types: Mapping[str, Data]
    of_relations: Mapping[str, Data]
    held_out: Mapping[str, Pairs] | None = None
    """Pairs of vertices to validate and to test on. None without edge splits."""
    held_out_from: int | None = None
    """Their earliest time. None if they were not split by time."""

    def splits_of(self, typed: TypedRanges | None) -> dict[str, npt.NDArray[np.int64]]:
        """Return the vertices of all types in each split."""
        firsts = {each.name: each.first for each in typed.types} if typed else {}
        found: dict[str, list[npt.NDArray[np.int64]]] = {}
        for of, data in self.of_types.items():
            for name, mask in data.masks.items():
                found.setdefault(name, []).append(firsts.get(of, 0) + np.flatnonzero(mask.read(0, len(mask))))
        return {name: np.concatenate(ids) for name, ids in found.items()}


def holds(contents: Contents | None) -> list[str]:
    """Return what a partition directory with such contents holds, in words. None: the assignment only."""
    if contents is None:
        return []
    types = [
        {
            "name": name,
            **_entries(each),
            "halo_features": contents.halo_features and each.features is not None,
        }
        for name, each in contents.of_types.items()
    ]
    relations = [
        {"name": name, **_entries(each, "edge_", times="times" if name else "edge_times")}
        for name, each in contents.of_relations.items()
    ]
    of_each = {"types": types, "relations": relations} if types[0]["name"] else types[0] | relations[0]
    return held({"num_directed_edges": True, "edge_splits": contents.held_out is not None, **of_each})


def _entries(data: Data, before: str = "", times: str = "times") -> dict[str, Any]:
    """Return the entries of a manifest that say what is stored."""
    return {
        f"{before}features": data.features is not None,
        f"{before}labels": data.labels is not None,
        f"{before}label_splits" if before else "splits": data.masks,
        times: data.times is not None,
    }


class Given:
    """The options about data, complete. ``ids`` are those that the vertices had in tables."""

    def __init__(self, given: SavedData, options: RunOptions, ids: Ids) -> None:
        self._given, self._options, self._ids = given, options, ids

    def open(self, typed: TypedRanges | None, n: int, m: int) -> Contents:
        """Open the data of each type and relation. Without types, the graph has one of each."""
        pairs = self._given.edge_splits
        held_out = None if pairs is None else held_out_of(pairs, n, typed)
        since = None if pairs is None else held_out_from(pairs)
        ranges = typed or TypedRanges.without_names(n, m, "directed")
        of_types, of_relations = dict[str, Data](), dict[str, Data]()
        for each in ranges.types:
            given, ids = self._of(each.name), of_name(self._ids, each.name) if typed else self._ids
            with _About("type", each.name) as about:
                of_types[each.name] = self._of_vertices(given, each.n, ids, about)
        for relation in ranges.relations:
            with _About("relation", relation.name) as about:
                data = self._of_edges(self._of(relation.name), relation.m, about)
            of_relations[relation.name] = data
        shape = self._given.halo_hops, self._given.halo_features
        return Contents(*shape, of_types, of_relations, held_out, since)

    def _of(self, name: str) -> SavedData:
        """Return the options for a type or a relation. Those of a graph without types have no names."""
        if not name:
            return self._given
        of: dict[str, Any] = {
            key: value.get(name) for key, value in vars(self._given).items() if isinstance(value, Mapping)
        }
        return replace(self._given, **of)

    def _of_vertices(self, given: SavedData, n: int, ids: Ids, about: str) -> Data:
        opened: Rows | None = None
        if given.features is not None:
            opened = rows_of_vertices("features", given.features, n, ids, self._options, fields=True)
            if len(opened.shape) == 1 and not opened.dtype.names:
                raise ParameterError(
                    f"features: shape {opened.shape}, expected one row per vertex. Give a single feature the shape "
                    f"({n}, 1)"
                )
        features = times = None
        labels = None if given.labels is None else rows_of("labels", labels_of(given.labels, n, ids))
        masks = _masks({} if given.splits is None else splits_of(given.splits, n, given.split, ids, about), n)
        if given.times is not None:
            times = _whole("times", rows_of_vertices("times", given.times, n, ids, self._options))
        if opened is not None:
            train = None
            if given.standardise:  # a type without splits is standardised as a whole
                train = masks.get("train", np.zeros(n, np.bool_)) if masks else np.ones(n, np.bool_)
            embedded = embedded_beside(given.features)
            features = stored_features(opened, given.feature_dtype, train, embedded=embedded)
        return Data(features, labels, {name: rows_of(name, mask) for name, mask in masks.items()}, times)

    def _of_edges(self, given: SavedData, m: int, about: str) -> Data:
        features = times = labels = None
        if given.edge_features is not None:
            rows = self._of_records("edge_features", given.edge_features, m)
            features = stored_features(rows, given.edge_feature_dtype, None, "edge_features")
        if given.edge_times is not None:
            times = _whole("edge_times", self._of_records("edge_times", given.edge_times, m))
        if given.edge_labels is not None:
            labels = rows_of("edge_labels", labels_of_records(given.edge_labels, m))
        given_splits = given.edge_label_splits
        masks = _masks({} if given_splits is None else splits_of_records(given_splits, m, about), m)
        return Data(features, labels, {name: rows_of(name, mask) for name, mask in masks.items()}, times)

    def _of_records(self, name: str, given: Any, m: int) -> Rows:
        """Return one row per record. Records have no ids, so the order of the rows is theirs."""
        rows = rows_of_records(name, given, self._options)
        match_records(name, len(rows), m)
        return rows


def _whole(name: str, rows: Rows) -> Rows:
    """Return times, one whole number per row."""
    if rows.dtype.kind not in "iu" or rows.dtype == np.uint64:
        raise TypeError(f"{name}: expected whole numbers of int64, got {rows.dtype}")
    if rows.shape[1:] not in ((), (1,)):
        raise ParameterError(f"{name}: shape {rows.shape}, expected one number per row")
    read = rows.read
    return Rows(
        rows.shape[:1],
        np.dtype(np.int64),
        lambda start, stop: read(start, stop).reshape(-1).astype(np.int64),
    )


class _About:
    """Adds to errors in the block which type or relation they are about. Warnings there begin with the same words."""

    def __init__(self, what: str, name: str) -> None:
        self._about = f"{what} {name!r}: " if name else ""

    def __enter__(self) -> str:
        return self._about

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if self._about and isinstance(error, FastpartError | TypeError) and error.args:
            error.args = (f"{self._about}{error.args[0]}", *error.args[1:])


def _masks(splits: Mapping[str, npt.NDArray[np.int64]], n: int) -> dict[str, npt.NDArray[np.bool_]]:
    masks = {name: np.zeros(n, dtype=np.bool_) for name in splits}
    for name, ids in splits.items():
        masks[name][ids] = True
    return masks


Sizes = dict[str, Any]
Span = Callable[[Sizes], tuple[int, int]]

IDS = ".ids.npy"
"""A file of ids in a part, while rows are gathered that no other file has in their order."""


@dataclass(frozen=True)
class Gathering:
    """An array that every part gets its rows of.

    Attributes
    ----------
    name : str
        Its file in the folder of a part, without ``.npy``.
    rows : Rows
        The rows of all parts.
    ids : str
        The file of the part with the ids of its rows.
    span : callable
        The range of these ids in a part, from what ``part.json`` says.
    first : int
        The id of the first of ``rows``.
    make : callable or None
        Returns the ids of a part, which no file has, from its folder and what ``part.json`` says.
    """

    name: str
    rows: Rows
    ids: str
    span: Span
    first: int = 0
    make: Callable[[Path, Sizes], Any] | None = None

    @property
    def key(self) -> str:
        """Its entry in the manifest, or in that of its type or relation."""
        return self.name.rpartition("/")[2]

    def ranges(self, inside: Path, sizes: list[Sizes]) -> list[tuple[int, int]]:
        """Return the range of ids of each part. Ids that no file has are written."""
        if self.make is None:
            return [self.span(size) for size in sizes]
        ranges = []
        for index, size in enumerate(sizes):
            folder = inside / part_name(index)
            ids = self.make(folder, size)
            with named(folder / IDS):
                np.save(folder / IDS, ids)
            ranges.append((0, len(ids)))
        return ranges


def arrays_of_type(typed: TypedRanges, number: int, contents: Contents) -> Iterator[Gathering]:
    """Yield the arrays of one type of vertices. Without types, these are the arrays of all vertices."""
    of = typed.types[number]
    data, above = contents.of_types[of.name], f"types/{of.name}/" if of.name else ""
    features = None if data.features is None else data.features.rows

    def spans(size: Sizes) -> list[tuple[int, int]]:
        hops = size["num_inner"], *size.get("num_halo", ())
        return TypeCounts.of(typed if of.name else None, size, hops, size["num_edges"]).spans(number)

    def halo(folder: Path, size: Sizes) -> Any:
        vertices = np.load(folder / "vertices.npy", mmap_mode="r")
        return np.concatenate([vertices[start:stop] for start, stop in spans(size)[1:]])

    named_rows = {"features": features, "labels": data.labels, "times": data.times, **data.masks}
    for name, rows in named_rows.items():
        if rows is not None:
            yield Gathering(f"{above}{name}", rows, "vertices.npy", lambda size: spans(size)[0], of.first)
    if contents.halo_features and features is not None:
        yield Gathering(f"{above}halo_features", features, IDS, _whole_rows, of.first, halo)


def arrays_of_relation(typed: TypedRanges, of: EdgeType, contents: Contents) -> Iterator[Gathering]:
    """Yield the arrays of the edges of a relation, or of its reverse. Without relations, these are all edges."""
    data = contents.of_relations[of.relation.name]
    arrays = {
        "edge_features": None if data.features is None else data.features.rows,
        EDGE_LABELS: data.labels,
    }
    arrays |= {f"edge_label_{name}": rows for name, rows in data.masks.items()}
    arrays["times" if of.name else "edge_times"] = data.times

    def ids(folder: Path, size: Sizes) -> Any:
        relations, edge_ids = (
            np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("relations", "edge_ids")
        )
        number, m = typed.edge_types.index(of), sum(each.m for each in typed.relations)
        return edge_ids[np.flatnonzero(relations == number)] % max(m, 1)

    for name, rows in arrays.items():
        if rows is not None and of.name:
            yield Gathering(f"relations/{of.name}/{name}", rows, IDS, _whole_rows, of.relation.first, ids)
        elif rows is not None:
            yield Gathering(name, rows, "edge_ids.npy", lambda size: (0, size["num_edges"]))


def _whole_rows(size: Sizes) -> tuple[int, int]:
    raise AssertionError("the ids of a part are made")


def count_types(folder: Path, size: Sizes, typed: TypedRanges) -> None:
    """Add to the sizes of a part how many of its vertices and edges are of each type."""
    vertices, relations = (
        np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("vertices", "relations")
    )
    bounds = [each.first for each in typed.types] + [typed.types[-1].range.stop]
    counts, start = [], 0
    for length in (size["num_inner"], *size["num_halo"]):
        places = np.searchsorted(vertices[start : start + length], bounds)
        counts.append(np.diff(places).tolist())
        start += length
    size["num_inner_of_type"], *halo = counts
    size["num_halo_of_type"] = halo
    size["num_edges_of_relation"] = np.bincount(relations, minlength=len(typed.edge_types)).tolist()


def described(arrays: Mapping[str, Rows]) -> dict[str, Any]:
    """Return the entries of a manifest for arrays of rows. Those of masks are the names of the splits."""
    entries: dict[str, Any] = {
        name: {"dtype": rows.dtype.name, "shape": list(rows.shape[1:])}
        for name, rows in arrays.items()
        if name not in (*SPLITS, *EDGE_MASKS)
    }
    for entry, masks in (("splits", SPLITS), (EDGE_LABEL_SPLITS, EDGE_MASKS)):
        if found := [name.removeprefix("edge_label_") for name in arrays if name in masks]:
            entries[entry] = found
    return entries
