"""Edge splits in a partition directory: the pairs to train on, to validate on and to test on, and reverse edges."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.inputs import arrays_of
from ..core.pairs import Keys, among, keys_of, undirected_keys
from ..core.parsing import named
from ..errors import ParameterError
from ..graphs.splits import EdgeSplits, Pairs
from ..partitions.parts import Parts, VertexPartData
from .schemas import SCHEMA

HELD_OUT = ("val", "test")
"""The splits that are no edges of the graph."""

Sizes = dict[str, Any]


def held_out_of(edge_splits: Any, n: int) -> dict[str, Pairs]:
    """Return the checked val and test pairs of an object, a mapping or a ``.npz``."""
    if isinstance(edge_splits, EdgeSplits):
        edge_splits = {name: getattr(edge_splits, name) for name in HELD_OUT}
    elif isinstance(edge_splits, str | bytes | os.PathLike):
        edge_splits = arrays_of("edge_splits", edge_splits)
    if not isinstance(edge_splits, Mapping) or not set(edge_splits) & set(HELD_OUT):
        raise TypeError(
            "edge_splits: expected what split_edges returns, or a mapping or .npz with pairs val and test"
        )
    held_out = {
        name: _pairs(f"edge_splits: {name}", edge_splits[name], n) for name in HELD_OUT if name in edge_splits
    }
    known = np.empty(0, np.uint64)
    for pairs in held_out.values():
        keys = np.unique(undirected_keys(pairs[:, 0], pairs[:, 1]))
        if len(found := np.flatnonzero(among(keys, known))):
            raise ParameterError(f"edge_splits: val and test both hold the pair {_pair(keys[found[0]])}")
        known = keys
    return held_out


def _pairs(name: str, given: Any, n: int) -> Pairs:
    pairs = np.asarray(given)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or (pairs.size and pairs.dtype.kind not in "iu"):
        raise ParameterError(
            f"{name}: expected pairs of ids, of shape (pairs, 2), got {pairs.dtype} of shape {pairs.shape}"
        )
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < n:
        raise ParameterError(f"{name}: ids must be from 0 to {n - 1}")
    if len(np.unique(keys_of(pairs[:, 0], pairs[:, 1]))) < len(pairs):
        raise ParameterError(f"{name}: a pair occurs more than once")
    return pairs.astype(np.int64)


def write_edge_splits(
    inside: Path,
    manifest: Mapping[str, Any],
    assignment: Any,
    held_out: Mapping[str, Pairs],
    sizes: list[Sizes],
) -> dict[str, int]:
    """Write the splits of each part, and return how many pairs each split has. ``sizes`` gets those of the parts.

    Needs about 60 bytes per in-edge of one part at a time and, if the graph is not undirected, 24 more.
    """
    parts = Parts(
        VertexPartData, inside, {**manifest, "k": len(sizes), "n": len(assignment), "schema": SCHEMA}
    )
    owners = {name: assignment[pairs[:, 1]] for name, pairs in held_out.items()}
    known = np.unique(
        np.concatenate([undirected_keys(pairs[:, 0], pairs[:, 1]) for pairs in held_out.values()])
    )
    totals = dict.fromkeys(("train", *held_out), 0)
    for part, size in zip(parts, sizes, strict=True):
        reverse = _reverse_ids(parts, part, manifest, assignment)
        found = {"train": _supervision(part, manifest, reverse, known)}
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
    """Return the pairs by target and source."""
    return np.ascontiguousarray(pairs[np.lexsort((pairs[:, 0], pairs[:, 1]))])


def _supervision(part: VertexPartData, manifest: Mapping[str, Any], reverse: Any, held_out: Keys) -> Pairs:
    """Return the pairs to train on whose target is an inner vertex. Each pair has the direction of its first record."""
    edges, m = int(part.indptr[part.num_inner]), int(manifest["m"])
    sources, targets, ids = (array[:edges] for array in part.in_edges())
    if len(leak := np.flatnonzero(among(undirected_keys(sources, targets), held_out))):
        pair = int(sources[leak[0]]), int(targets[leak[0]])
        raise ParameterError(
            f"edge_splits: the held-out pair {pair} is an edge of the graph. Partition and save the training graph, "
            "as split_edges returns it"
        )
    reverse, second = reverse[:edges], ids >= m
    chosen = sources != targets
    if manifest["directedness"] == "symmetric":
        chosen &= (reverse < 0) | (ids < reverse)
    order = np.lexsort((ids - m * second, sources, targets))
    keys = keys_of(targets[order], sources[order])
    first = order[np.concatenate(([True], keys[1:] != keys[:-1]))[: len(keys)]]
    first = first[chosen[first] & ~second[first]]
    return np.stack([sources[first], targets[first]], axis=1)


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


def _pair(key: Any) -> tuple[int, int]:
    return int(key) >> 32, int(key) & 0xFFFFFFFF
