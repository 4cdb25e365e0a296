"""Negatives that all facts of a step share, and hard ones of single facts, as functions of seed, epoch and step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...core.pairs import distinct, hashed
from ...loading.negatives import ByDegree
from ..method_options import PoolRule
from .dataset import FactDataset

Ids = npt.NDArray[np.int64]


class Pools:
    """Vertices of a type that take the place of the true end of each fact of a step.

    Parameters
    ----------
    dataset : FactDataset
        The types.
    facts : numpy.ndarray
        int64, of shape (facts, 3): the facts to train on.
    rule : {"uniform", "degree", "batch", "all"}
        Where they come from.
    count : int
        How many there are, unless the rule says it.
    seed : int
        Seed of the sample.
    """

    def __init__(self, dataset: FactDataset, facts: Ids, rule: PoolRule, count: int, seed: int) -> None:
        self._facts, self._rule, self._count, self._seed = facts, rule, count, seed
        self.of_relation = [dataset.ends(end)[:, 0] for end in (0, 1)]
        self._last = {int(first): int(last) for end in (0, 1) for first, last in dataset.ends(end)}
        if rule == "degree":
            ends = facts[:, :2].reshape(-1)
            self._by_degree = {
                first: ByDegree(ends, range(first, last)) for first, last in self._last.items()
            }

    def of(self, first: int, end: int, positions: Ids, epoch: int, step: int) -> Ids:
        """Return the vertices of the type that begins with ``first``, to take the place of this end.

        ``positions`` are those of the facts of all workers in the step.
        """
        last = self._last[first]
        if self._rule == "all":
            return np.arange(first, last)
        if self._rule == "batch":
            facts = self._facts[positions]
            return distinct(facts[self.of_relation[end][facts[:, 2]] == first, end])
        random = hashed(np.array([step], np.uint64), self._count, self._seed, epoch, first, end)[0]
        if self._rule == "uniform":
            return first + (random % np.uint64(last - first)).astype(np.int64)
        return self._by_degree[first].of(random)


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

    def of_facts(self, facts: Ids, positions: Ids, epoch: int) -> tuple[Ids, npt.NDArray[np.bool_]]:
        """Return targets for facts at some positions, of shape (facts, count), and a mask of those that count.

        Facts without rows in the table have none. They are sampled with replacement, and never the true target.
        """
        keys = facts[:, 0] * self.relations + facts[:, 2]
        first = np.searchsorted(self.keys, keys)
        counts = np.searchsorted(self.keys, keys, side="right") - first
        random = hashed(positions.astype(np.uint64), self.count, self.seed, epoch, 0x68617264)
        places = first[:, None] + (random % np.maximum(counts, 1)[:, None].astype(np.uint64)).astype(np.int64)
        found = np.concatenate([self.targets, [0]])[np.minimum(places, len(self.targets))]
        counted = (counts > 0)[:, None] & (found != facts[:, 1:2])
        return np.where(counted, found, facts[:, 1:2]), counted
