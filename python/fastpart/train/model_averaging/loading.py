"""The parts of one worker, one in memory at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ..data import Dataset, LocalGraph


class Parts:
    """The parts ``rank``, ``rank + world``, ... of a dataset.

    A single one is kept; of several, each is loaded when its turn comes.

    Attributes
    ----------
    numbers : list of int
        Which parts these are.
    seconds : float
        Spent on loading since it was last set to 0.
    """

    def __init__(self, dataset: Dataset, rank: int, world: int) -> None:
        self.numbers = list(range(rank, dataset.partition.k, world))
        self.seconds = 0.0
        self._dataset = dataset
        self._kept: LocalGraph | None = None

    def load(self, number: int) -> LocalGraph:
        """Return one of the parts."""
        if self._kept is not None:
            return self._kept
        start = time.perf_counter()
        local = self._dataset.part(number)
        self.seconds += time.perf_counter() - start
        if len(self.numbers) == 1:
            self._kept = local
        return local

    def __iter__(self) -> Iterator[LocalGraph]:
        return map(self.load, self.numbers)
