"""The seconds of the steps of an epoch."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

AGGREGATION, EXCHANGE, SYNCHRONISING = "aggregation", "exchange", "synchronising"
"""Sums over the edges here, messages about vertices, messages about weights."""


class Clock:
    """Seconds by step since the last :meth:`read`.

    Attributes
    ----------
    seconds : dict
        Seconds of each step so far, 0 for others.
    """

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Count the time of the block."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] += time.perf_counter() - start

    def read(self) -> defaultdict[str, float]:
        """Return the seconds, and reset them."""
        seconds, self.seconds = self.seconds, defaultdict(float)
        return seconds
