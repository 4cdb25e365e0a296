"""The parts of one worker, one in memory at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ..data import Dataset, LocalGraph


class Parts:
    """The parts ``rank``, ``rank + world``, ... of a dataset.

    A single part stays in memory. Several parts are loaded in turn.

    Attributes
    ----------
    numbers : list of int
        The parts.
    seconds : float
        Seconds of loading since it was last set to 0.
    """

    def __init__(self, dataset: Dataset, rank: int, world: int) -> None:
        self.numbers = list(range(rank, dataset.partition.k, world))
        self.seconds = 0.0
        self._dataset = dataset
        self._only: LocalGraph | None = None

    def load(self, number: int) -> LocalGraph:
        """Return one of the parts."""
        if self._only is not None:
            return self._only
        start = time.perf_counter()
        local = self._dataset.part(number)
        self.seconds += time.perf_counter() - start
        if len(self.numbers) == 1:
            self._only = local
        return local

    def __iter__(self) -> Iterator[LocalGraph]:
        return map(self.load, self.numbers)
