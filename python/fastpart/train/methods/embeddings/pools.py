"""Negatives that all facts of a step share, as functions of seed, epoch and step."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ....core.pairs import distinct, hashed
from ....loading.negatives import ByDegree
from ...method_options import PoolRule
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
