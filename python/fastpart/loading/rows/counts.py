"""The rows that batches need, and those of other ranks among them, counted in one place."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

_NAMES = ("rows", "remote_rows", "remote_bytes", "cached_rows")


class Counts:
    """Rows of batches and of other ranks, their bytes, and the seconds of fetching rows. Several threads may count."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._seconds = 0.0

    def add(self, name: str, count: int) -> None:
        """Add to a count, by its name in :meth:`..loader.Loader.read_counts`."""
        with self._lock:
            self._of[name] += count

    def read(self) -> dict[str, int]:
        """Return the counts since the last call."""
        with self._lock:
            counts, self._of = self._of, Counter()
        return {name: counts[name] for name in _NAMES}

    def read_seconds(self) -> float:
        """Return the seconds since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the seconds of what is done within."""
        start = perf_counter()
        yield
        self._seconds += perf_counter() - start
