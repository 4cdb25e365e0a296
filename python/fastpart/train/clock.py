"""The seconds of the steps of an epoch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from ..loading import Trace

AGGREGATION, EXCHANGE, SYNCHRONISING = "aggregation", "exchange", "synchronising"
"""Sums over the edges here, messages about vertices, messages about weights."""


class Clock:
    """Seconds by step since the last :meth:`read`.

    Parameters
    ----------
    trace : Trace, optional
        Gets every step.

    Attributes
    ----------
    seconds : dict
        Seconds of each step so far, 0 for others.
    """

    def __init__(self, trace: Trace | None = None) -> None:
        self._trace = trace
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Count the time of the block."""
        start = Trace.now()
        try:
            yield
        finally:
            self.seconds[step] += (Trace.now() - start) / 1e9
            if self._trace is not None:
                self._trace.span(step, start)

    def read(self) -> defaultdict[str, float]:
        """Return the seconds, and reset them."""
        seconds, self.seconds = self.seconds, defaultdict(float)
        return seconds
