"""The seconds of the steps of an epoch."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

AGGREGATION, EXCHANGE, SYNCHRONISING = "aggregation", "exchange", "synchronising"
STEPS = (AGGREGATION, EXCHANGE, SYNCHRONISING)
"""Sums over the edges here, messages about vertices, messages about weights. The rest is dense computation."""


class Clock:
    """Seconds by step since the last :meth:`read`.

    Attributes
    ----------
    seconds : dict
        Seconds of each of :data:`STEPS`.
    """

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(STEPS, 0.0)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Count the time of the block."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] += time.perf_counter() - start

    def read(self) -> dict[str, float]:
        """Return the seconds, and reset them."""
        seconds, self.seconds = self.seconds, dict.fromkeys(STEPS, 0.0)
        return seconds
