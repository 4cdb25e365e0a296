"""The seeds of every step, and which of them a rank takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.pairs import mixed
from ..errors import ParameterError
from ..partitions.parts import Parts, VertexPartData

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Seeds:
    """Vertices to make batches for, in their order.

    Attributes
    ----------
    ids : numpy.ndarray
        int64: original ids. Those of a split ascend.
    rows : numpy.ndarray
        uint32: row of each in the topology.
    labels : numpy.ndarray or None
        Label of each.
    """

    ids: Ids
    rows: npt.NDArray[np.uint32]
    labels: npt.NDArray[Any] | None

    def order(self, seed: int, epoch: int) -> Ids:
        """Return a permutation of the positions. It depends on the ids, not on their order."""
        key = mixed(mixed(np.uint64(seed)) ^ np.uint64(epoch))
        return np.argsort(mixed(self.ids.astype(np.uint64) ^ key))  # different ids have different numbers


def seeds_of(
    vertices: Any, parts: Parts[VertexPartData], topology: _core.Topology, splits: list[str]
) -> Seeds:
    """Return the labelled vertices of a split, or given vertices."""
    if isinstance(vertices, str):
        if vertices not in splits:
            there = ", ".join(map(repr, splits)) or "none"
            raise ParameterError(
                f"vertices: the directory has no split {vertices!r}. It has {there}. Save the partition with "
                "splits=, or pass ids"
            )
        masks = [part.labelled(vertices) for part in parts]
    else:
        rows = topology.rows_of(vertex_ids(vertices, topology.num_vertices, "'train', 'val', 'test', "))
        return _of_rows(rows, parts, topology)
    places = [
        np.flatnonzero(mask) + start
        for mask, start in zip(masks, topology.starts, strict=False)
        if mask is not None
    ]
    rows = np.concatenate(places).astype(np.uint32)
    seeds = _of_rows(rows, parts, topology)
    order = np.argsort(seeds.ids)
    labels = None if seeds.labels is None else seeds.labels[order]
    return Seeds(seeds.ids[order], rows[order], labels)


def vertex_ids(vertices: Any, n: int, names: str = "") -> Ids:
    """Return ids as int64, from ids or from a mask. ``names`` are what else is accepted, for the text of an error."""
    array = np.asarray(vertices)
    if array.dtype == np.bool_ and array.shape == (n,):
        return np.flatnonzero(array)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            f"vertices: expected {names}integer ids or a bool mask of length {n}, got "
            f"{array.dtype} of shape {array.shape}"
        )
    bad = np.flatnonzero((array < 0) | (array >= n))
    if bad.size:
        raise ParameterError(f"vertices: {array[bad[0]]} is not between 0 and {n - 1}")
    ids, counts = np.unique(array, return_counts=True)
    if len(ids) < len(array):
        raise ParameterError(f"vertices: {ids[counts > 1][0]} occurs more than once")
    return np.ascontiguousarray(array, np.int64)


def _of_rows(rows: npt.NDArray[np.uint32], parts: Parts[VertexPartData], topology: _core.Topology) -> Seeds:
    starts = topology.starts
    ids, labels = np.empty(len(rows), np.int64), None
    owners = owner_of(rows, starts)
    for part in parts:
        those = np.flatnonzero(owners == part.index)
        own = rows[those] - starts[part.index]
        ids[those] = part.inner[own]
        if part.labels is not None:
            if labels is None:
                labels = np.empty((len(rows), *part.labels.shape[1:]), part.labels.dtype)
            labels[those] = part.labels[own]
    return Seeds(ids, rows, labels)


def owner_of(rows: npt.NDArray[Any], starts: Ids) -> Ids:
    """Return the part of each row of the topology."""
    return np.searchsorted(starts, rows, side="right") - 1


def rank_of_part(k: int, world_size: int) -> Ids:
    """Return the rank that owns each part: consecutive parts, as evenly as possible."""
    return np.arange(k) * world_size // k
