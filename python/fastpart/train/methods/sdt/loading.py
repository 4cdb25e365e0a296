"""The parts of one worker, one in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator

from ...data import Dataset
from ...learning.local_graph import LocalGraph
from ...ranks import Clock, device

LOADING = "loading"
"""The timed step of reading a part."""


class Parts:
    """The parts ``rank``, ``rank + world``, ... of a dataset.

    A single part stays in memory. Several parts are loaded one after another.

    Attributes
    ----------
    numbers : list of int
        The parts.
    """

    def __init__(self, dataset: Dataset, rank: int, world: int, clock: Clock) -> None:
        self.numbers = list(range(rank, dataset.partition.k, world))
        self._dataset, self._clock = dataset, clock
        self._only: LocalGraph | None = None

    def load(self, number: int) -> LocalGraph:
        """Return one of the parts."""
        if self._only is not None:
            return self._only
        with self._clock.timed(LOADING):
            local = self._dataset.part(number, device())
        if len(self.numbers) == 1:
            self._only = local
        return local

    def __iter__(self) -> Iterator[LocalGraph]:
        return map(self.load, self.numbers)
