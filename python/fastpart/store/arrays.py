"""The arrays of rows in a partition directory: where each lies, and which rows of its source a part holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..core.inputs import EDGE_LABEL_SPLITS, EDGE_LABELS, EDGE_MASKS, SPLITS
from ..core.parsing import named
from ..core.rows import Rows
from ..graphs.types import EdgeType, TypedRanges
from ..partitions.part_rows import TypeCounts
from ..partitions.parts import part_name
from .contents import Contents

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
        yield Gathering(f"{above}halo_features", features, IDS, _whole, of.first, halo)


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
            yield Gathering(f"relations/{of.name}/{name}", rows, IDS, _whole, of.relation.first, ids)
        elif rows is not None:
            yield Gathering(name, rows, "edge_ids.npy", lambda size: (0, size["num_edges"]))


def _whole(size: Sizes) -> tuple[int, int]:
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
