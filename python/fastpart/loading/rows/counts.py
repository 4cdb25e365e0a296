"""What batches need of the parts of other ranks, counted in one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

_NAMES = ("remote_rows", "remote_bytes", "cached_rows")


class Counts:
    """Rows of other ranks, their bytes, and the seconds of fetching rows.

    Attributes
    ----------
    of : collections.Counter
        The counts, by their names in :meth:`..loader.Loader.read_counts`.
    """

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()
        self._seconds = 0.0

    def read(self) -> dict[str, int]:
        """Return the counts since the last call."""
        counts, self.of = self.of, Counter()
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
