"""When to launch the next batch: the coarse level of the schedule.

Source: Zheng et al., "ByteGNN: Efficient Graph Neural Network Training at Large Scale", PVLDB 15(6), 2022, Algorithm 1.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

SIGMA = 10.0
"""The launch score from which on a batch is launched.

A score is the product of the gap since the last launch, in steps of training, of 0 to 100 for the utilisation, and of
the balance. With processors half idle and a queue that lasts as long as a batch takes, a batch is launched every ninth
of a step. With two more in the queue, every third.
"""

_SCALE = 100 / math.log(101)
"""Makes the weight of the utilisation 100 at 0 % and 0 at 100 %."""


class Mean:
    """The mean of some numbers. None before the first."""

    def __init__(self) -> None:
        self._sum, self._count = 0.0, 0

    def add(self, value: float) -> None:
        """Count a number."""
        self._sum, self._count = self._sum + value, self._count + 1

    @property
    def value(self) -> float | None:
        """The mean so far."""
        return self._sum / self._count if self._count else None


class Launching:
    """The launch score, from what was measured so far.

    The paper takes the gap in seconds. Here it is in steps of training, so that one constant serves fast and slow
    steps.

    Parameters
    ----------
    processors : float
        Processors of this process.
    now, used : callable
        The time, and the processor time that this process has used, in seconds.

    Attributes
    ----------
    making, training : Mean
        Seconds that batches take to make and to train on.
    """

    def __init__(
        self,
        processors: float,
        now: Callable[[], float] = time.perf_counter,
        used: Callable[[], float] = time.process_time,
    ) -> None:
        self._processors, self._now, self._used = processors, now, used
        self.making, self.training = Mean(), Mean()
        self.launched()

    def launched(self) -> None:
        """Begin a new gap."""
        self._since, self._used_before = self._now(), self._used()

    @property
    def gap(self) -> float:
        """Seconds since the last launch."""
        return self._now() - self._since

    @property
    def utilisation(self) -> float:
        """Share of the processors that this process used since the last launch."""
        available = self.gap * self._processors
        return min(1.0, (self._used() - self._used_before) / available) if available > 0 else 1.0

    def score(self, queue: int) -> float:
        """Return the launch score. Infinite if batches are used as soon as they are there.

        Parameters
        ----------
        queue : int
            Batches that were made and not used yet. 0 counts as 1.
        """
        making, training = self.making.value, self.training.value
        if making is None or training is None:
            return 0.0
        if training <= 0:
            return math.inf
        balance = making / (training * max(queue, 1))
        weight = 101 - math.exp(100 * self.utilisation / _SCALE)
        return self.gap / training * weight * balance

    def is_due(self, queue: int) -> bool:
        """Return whether the score says to launch a batch."""
        return self.score(queue) >= SIGMA
