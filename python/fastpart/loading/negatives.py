"""Negatives: for each pair of vertices, other targets. They are functions of the pair, the seed and the epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.pairs import Keys, hashed, mixed

Ids = npt.NDArray[np.int64]

_DEGREE_POWER = 0.75
"""As in word2vec."""


def others(random: Keys, sources: Ids | None, targets: Ids, n: int) -> Ids:
    """Return vertices from random numbers, each of the n vertices but those of its pair with the same probability.

    ``sources`` are None if they are not among these vertices.
    """
    excluded = [targets] if sources is None else [np.minimum(sources, targets), np.maximum(sources, targets)]
    ids = (random % np.uint64(n - len(excluded))).astype(np.int64)
    for each in excluded:
        ids += ids >= each
    return ids


class AllVertices:
    """The vertices that negatives are taken from, at any time.

    Parameters
    ----------
    vertices : range
        All vertices, or those of the type of the targets.
    with_sources : bool
        Whether the sources are among them.
    """

    def __init__(self, vertices: range, with_sources: bool = True) -> None:
        self._vertices, self._with_sources = vertices, with_sources

    def others(self, random: Keys, sources: Ids, targets: Ids, before: Ids | None) -> Ids:
        """Return what :func:`others` does."""
        first = self._vertices.start
        known = sources - first if self._with_sources else None
        return first + others(random, known, targets - first, len(self._vertices))

    def instead(self, ids: Ids, random: Keys, sources: Ids, targets: Ids, before: Ids | None) -> Ids:
        """Return the vertices, with uniform ones in the place of those of the pair itself."""
        clash = (ids == sources) | (ids == targets)
        return np.where(clash, self.others(mixed(random), sources, targets, before), ids)


class ByDegree:
    """Vertices of a range, sampled by their number of edges to the power of 0.75 (word2vec, Mikolov et al. 2013).

    Parameters
    ----------
    ends : numpy.ndarray
        int64: the ends of edges. Those outside the range count nothing.
    vertices : range
        The vertices.
    """

    def __init__(self, ends: Ids, vertices: range) -> None:
        inside = ends[(ends >= vertices.start) & (ends < vertices.stop)] - vertices.start
        degree = np.bincount(inside, minlength=len(vertices))
        self._first, self._sums = vertices.start, np.cumsum(degree**_DEGREE_POWER)

    def of(self, random: Keys) -> Ids:
        """Return vertices from random numbers."""
        shares = (random >> np.uint64(11)).astype(np.float64) * 2.0**-53
        places = np.searchsorted(self._sums, shares * self._sums[-1], side="right")
        found: Ids = self._first + np.minimum(places, len(self._sums) - 1)
        return found


@dataclass(frozen=True, eq=False)
class HardNegatives:
    """Wrong targets of (source, relation), from a table.

    Attributes
    ----------
    keys, targets : numpy.ndarray
        int64: source and relation of each row as one number, which ascend, and its target.
    relations, count, seed : int
        Number of relations, how many a fact gets, and the seed of the sample.
    """

    keys: Ids
    targets: Ids
    relations: int
    count: int
    seed: int

    @classmethod
    def of(cls, table: Ids, relations: int, count: int, seed: int) -> HardNegatives:
        """Take rows of source, target and relation."""
        keys = table[:, 0] * relations + table[:, 2]
        order = np.lexsort((table[:, 1], keys))
        return cls(keys[order], table[order, 1], relations, count, seed)

    def of_facts(self, facts: Ids, numbers: Ids, epoch: int) -> tuple[Ids, npt.NDArray[np.bool_]]:
        """Return targets for facts with some numbers, of shape (facts, count), and a mask of those that count.

        Facts without rows in the table have none. They are sampled with replacement, and never the true target, which
        stands in the place of those that do not count. The numbers tell facts from each other in the sample.
        """
        keys = facts[:, 0] * self.relations + facts[:, 2]
        first = np.searchsorted(self.keys, keys)
        counts = np.searchsorted(self.keys, keys, side="right") - first
        random = hashed(numbers.astype(np.uint64), self.count, self.seed, epoch, 0x68617264)
        places = first[:, None] + (random % np.maximum(counts, 1)[:, None].astype(np.uint64)).astype(np.int64)
        found = np.concatenate([self.targets, [0]])[np.minimum(places, len(self.targets))]
        counted = (counts > 0)[:, None] & (found != facts[:, 1:2])
        return np.where(counted, found, facts[:, 1:2]), counted


def partners(random: Keys, places: Ids, batch_size: int, total: int) -> Ids:
    """Return for each place in an epoch another place of the same batch. A batch of one has no other.

    Parameters
    ----------
    random : numpy.ndarray
        uint64, of shape (places, count).
    places : numpy.ndarray
        int64: places in the order of the epoch.
    batch_size, total : int
        Places of a batch and of the epoch.
    """
    starts = places - places % batch_size
    sizes = np.minimum(batch_size, total - starts)
    steps: Any = 1 + (random % np.maximum(sizes - 1, 1)[:, None].astype(np.uint64)).astype(np.int64)
    found: Ids = starts[:, None] + (places[:, None] - starts[:, None] + steps) % sizes[:, None]
    return found
