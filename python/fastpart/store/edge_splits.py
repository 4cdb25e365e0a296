"""Edge splits in a partition directory: the pairs to train on, to validate on and to test on, and reverse edges."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.inputs import arrays_of
from ..core.pairs import keys_of
from ..core.parameters import path, shown
from ..core.parsing import named
from ..core.tensors import arrays_in
from ..errors import GraphFormatError, ParameterError
from ..graphs.given_splits import Facts, Known, Pairs, pairs_of
from ..graphs.splits import EdgeSplits
from ..graphs.types import TypedRanges
from ..partitions.parts import Parts, VertexPartData
from .schemas import SCHEMA

HELD_OUT = ("val", "test")
"""The splits that are no edges of the graph."""

Sizes = dict[str, Any]


def held_out_of(edge_splits: Any, n: int, typed: TypedRanges | None = None) -> dict[str, Pairs]:
    """Return the checked val and test pairs of an object, a mapping, a ``.npz`` or a folder of OGB."""
    if isinstance(edge_splits, EdgeSplits):
        edge_splits = {name: getattr(edge_splits, name) for name in HELD_OUT}
    elif isinstance(edge_splits, str | bytes | os.PathLike):
        edge_splits = _read(edge_splits)
    if not isinstance(edge_splits, Mapping) or not set(edge_splits) & set(HELD_OUT):
        raise TypeError(
            "edge_splits: expected what split_edges returns, or a mapping or .npz with pairs val and test"
        )
    held_out = {
        name: pairs_of(f"edge_splits: {name}", edge_splits[name], n, typed)
        for name in HELD_OUT
        if name in edge_splits
    }
    if len(held_out) == len(HELD_OUT):
        # The directedness does not matter here: a pair and its reverse are not in different splits.
        Facts.of(typed, "undirected").refuse_common(held_out["val"], held_out["test"], "edge_splits: ")
    return held_out


def _read(source: str | bytes | os.PathLike[Any]) -> Mapping[str, Any]:
    """Return the arrays of a ``.npz``, or the pairs of a folder ``split/SCHEME`` of OGB's datasets of links."""
    folder = path("edge_splits", source)
    if not folder.is_dir():
        return arrays_of("edge_splits", source)
    files = {"val": folder / "valid.pt", "test": folder / "test.pt"}
    for file in files.values():
        if not file.is_file():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))
    return {name: _pairs_in(file) for name, file in files.items()}


def _pairs_in(file: Path) -> npt.NDArray[Any]:
    """Return the pairs of a file of OGB: its ``edge``, or its ``source_node`` and ``target_node``."""
    content = arrays_in(file)
    ends = [content[name] for name in ("source_node", "target_node") if name in content]
    if "edge" in content:
        return np.asarray(content["edge"])
    if len(ends) == 2:
        return np.column_stack(ends)
    raise GraphFormatError(
        f"{shown(file)}: expected edge, or source_node and target_node. It has {', '.join(content)}. Pairs of "
        "relations go into a .npz, as split_edges writes them"
    )


def held_out_from(edge_splits: Any) -> int | None:
    """Return the earliest time of the held-out pairs. None: they were not split by time."""
    if isinstance(edge_splits, EdgeSplits):
        edge_splits = vars(edge_splits)
    elif isinstance(edge_splits, str | bytes | os.PathLike):
        edge_splits = _read(edge_splits)
    times = [edge_splits.get(f"{name}_times") for name in HELD_OUT]
    return min((int(each.min()) for each in times if each is not None and len(each)), default=None)


def write_edge_splits(
    inside: Path,
    manifest: Mapping[str, Any],
    assignment: Any,
    held_out: Mapping[str, Pairs],
    sizes: list[Sizes],
    typed: TypedRanges | None = None,
) -> dict[str, int]:
    """Write the splits of each part, and return how many pairs each split has. ``sizes`` gets those of the parts.

    ``manifest`` has what the parts need of it, in a graph with types its types and relations, too. Needs about 60 bytes
    per in-edge of one part at a time and, if the graph is not undirected, 24 more.
    """
    parts = Parts(
        VertexPartData, inside, {"schema": SCHEMA, **manifest, "k": len(sizes), "n": len(assignment)}
    )
    owners = {name: assignment[pairs[:, 1]] for name, pairs in held_out.items()}
    facts = Facts.of(typed, manifest["directedness"])
    known = facts.known(np.concatenate(list(held_out.values())))
    totals = dict.fromkeys(("train", *held_out), 0)
    for part, size in zip(parts, sizes, strict=True):
        if typed is None:
            reverse = _reverse_ids(parts, part, manifest, assignment)
            found = {"train": _supervision(part, manifest, reverse, known)}
        else:
            reverse = _reverse_of_records(part, typed)
            found = {"train": _facts(part, typed, known)}
        found |= {name: _sorted(pairs[owners[name] == part.index]) for name, pairs in held_out.items()}
        _put(part.folder / "edge_reverse.npy", reverse)
        for name, pairs in found.items():
            _put(part.folder / f"edge_{name}.npy", pairs)
            totals[name] += len(pairs)
        size["edge_splits"] = {name: len(pairs) for name, pairs in found.items()}
    return totals


def _put(file: Path, array: npt.NDArray[Any]) -> None:
    """Write a file of a directory that is still under its temporary name."""
    with named(file):
        np.save(file, array)


def _sorted(pairs: Pairs) -> Pairs:
    """Return the pairs by target, source and relation."""
    order = np.lexsort((pairs[:, 2:].sum(1), pairs[:, 0], pairs[:, 1]))
    return np.ascontiguousarray(pairs[order])


def _supervision(part: VertexPartData, manifest: Mapping[str, Any], reverse: Any, held_out: Known) -> Pairs:
    """Return the pairs to train on whose target is an inner vertex. Each pair has the direction of its first record."""
    edges, m = int(part.indptr[part.num_inner]), int(manifest["m"])
    sources, targets, ids = (array[:edges] for array in part.in_edges())
    _refuse_leaks(np.stack([sources, targets], axis=1), held_out)
    reverse, second = reverse[:edges], ids >= m
    chosen = sources != targets
    if manifest["directedness"] == "symmetric":
        chosen &= (reverse < 0) | (ids < reverse)
    order = np.lexsort((ids - m * second, sources, targets))
    keys = keys_of(targets[order], sources[order])
    first = order[np.concatenate(([True], keys[1:] != keys[:-1]))[: len(keys)]]
    first = first[chosen[first] & ~second[first]]
    return np.stack([sources[first], targets[first]], axis=1)


def _refuse_leaks(edges: Pairs, held_out: Known, relations: Sequence[str] = ()) -> None:
    if len(leak := np.flatnonzero(held_out.hold(edges))):
        u, v, *number = edges[leak[0]].tolist()
        what = f"an edge {relations[number[0]]!r}" if number else "an edge"
        raise ParameterError(
            f"edge_splits: the held-out pair {(u, v)} is {what} of the graph. Partition and save the training graph, "
            "as split_edges returns it"
        )


def _facts(part: VertexPartData, typed: TypedRanges, held_out: Known) -> Pairs:
    """Return the pairs to train on whose target is an inner vertex, of each relation once, with the relation.

    A pair of a relation that takes both directions for one has the direction of its first record.
    """
    edges = int(part.indptr[part.num_inner])
    sources, targets, ids = (array[:edges] for array in part.in_edges())
    assert part.relations is not None
    relations = part.relations[:edges].astype(np.int64)
    of_relation = relations < len(typed.relations)
    found = np.stack([sources, targets, relations], axis=1)[of_relation]
    _refuse_leaks(found, held_out, typed.names)
    m = sum(each.m for each in typed.relations)
    second, records = ids[of_relation] >= m, ids[of_relation] % m
    order = np.lexsort((records, found[:, 2], found[:, 0], found[:, 1]))
    found, second = found[order], second[order]
    first = np.ones(len(found), np.bool_)
    first[1:] = (found[1:] != found[:-1]).any(axis=1)
    return np.ascontiguousarray(found[first & ~second])


def _reverse_of_records(part: VertexPartData, typed: TypedRanges) -> Any:
    """Return the id of the other edge of the record of each in-edge, -1 if its relation has no reverse."""
    sources, targets, ids = part.in_edges()
    m = sum(each.m for each in typed.relations)
    assert part.relations is not None
    both = np.array([bool(each.relation.reverse) for each in typed.edge_types])[part.relations]
    merged = np.array([each.relation.reverse == "merged" for each in typed.edge_types])[part.relations]
    other = np.where(ids < m, ids + m, ids - m)
    return np.where(merged & (sources == targets), ids, np.where(both, other, -1))


def _reverse_ids(
    parts: Parts[VertexPartData], part: VertexPartData, manifest: Mapping[str, Any], assignment: Any
) -> Any:
    """Return the id of the in-edge in the other direction of each in-edge, -1 if there is none."""
    m = int(manifest["m"])
    sources, targets, ids = part.in_edges()
    if manifest["directedness"] == "undirected":
        return np.where(sources == targets, ids, np.where(ids < m, ids + m, ids - m))
    reverse = np.full(len(ids), -1, np.int64)
    wanted, owners = keys_of(targets, sources), assignment[sources]
    for owner in np.flatnonzero(np.bincount(owners)).tolist():
        other = parts[owner]
        edges = int(other.indptr[other.num_inner])
        u, v, others = (array[:edges] for array in other.in_edges())
        order = np.lexsort((others, keys_of(u, v)))
        keys = keys_of(u, v)[order]
        those = np.flatnonzero(owners == owner)
        places = np.searchsorted(keys, wanted[those])
        there = places < len(keys)
        there[there] = keys[places[there]] == wanted[those[there]]
        reverse[those[there]] = others[order[places[there]]]
    return reverse
