"""Features of the parts of other ranks: which rows batches need, how many, and where they come from."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.pairs import among
from .ahead import Ahead
from .cached_rows import refuse_large
from .exchange import Array, Exchange, RowIds
from .sample import SampledArrays

Work = TypeVar("Work")
Result = TypeVar("Result")

FilledBatch = tuple[SampledArrays, Array | None]
"""A batch, and the features of its nodes."""


class Fetching:
    """The features of batches. It counts the rows of other ranks, and fetches those that are not in files here.

    Parameters
    ----------
    features : _core.Features or None
        The rows that are in files here, if there are any.
    none : numpy.ndarray
        No rows, of their dtype and shape.
    starts : numpy.ndarray
        int64: first row of each part, and the number of rows.
    away : numpy.ndarray
        Mask of the parts whose rows are counted and, if there is an exchange, fetched.
    exchange : Exchange, optional
        Messages to the other ranks. Without it all features are in files.

    Attributes
    ----------
    away : list of int
        These parts.
    """

    def __init__(
        self,
        features: _core.Features | None,
        none: Array,
        starts: npt.NDArray[np.int64],
        away: npt.NDArray[np.bool_],
        exchange: Exchange | None,
    ) -> None:
        self.features, self._none, self._exchange = features, none, exchange
        self._starts, self.away = starts, np.flatnonzero(away).tolist()
        self._counts = {"remote_rows": 0, "remote_bytes": 0, "cached_rows": 0}
        self._cached, self._values = np.empty(0, np.uint32), none[:0]
        self._elsewhere: RowIds | None = None
        self._seconds = 0.0

    @property
    def with_batches(self) -> _core.Features | None:
        """The features in files, if batches are filled from them while they are made. Else None."""
        return self.features if self._elsewhere is None else None

    @property
    def by_messages(self) -> bool:
        """Whether rows of the parts that are away come by messages."""
        return self._exchange is not None

    def keep_cached(self, rows: RowIds) -> None:
        """Keep rows of other ranks, which ascend, so that batches need not fetch them. All ranks have to call it.

        Rows in files are only counted as cached: the page cache keeps them.
        """
        self._cached = rows
        if self._exchange is not None:
            refuse_large(len(rows), self.row_bytes, _core.memory_budget())
            self._exchange.begin(1)
            self._values = self._fetch(rows, self.features, self._none)
            self._exchange.read_bytes()

    @property
    def cached(self) -> RowIds:
        """Rows of other ranks that are kept."""
        return self._cached

    def leave_out(self, rows: RowIds) -> None:
        """Fill batches without these rows, which ascend. They are of own parts or cached."""
        self._elsewhere = rows

    def read(self, rows: RowIds) -> Array:
        """Return the features of rows that are in files here or cached."""
        if self.features is None:
            x = np.empty((len(rows), *self._none.shape[1:]), self._none.dtype)
        else:
            x = self.features.gather(rows)
        if self.by_messages:
            put(x, rows, self._cached, self._values)
        return x

    @property
    def row_bytes(self) -> int:
        """Bytes of the features of a row."""
        return math.prod(self._none.shape[1:]) * self._none.itemsize

    def read_counts(self) -> dict[str, int]:
        """Return the counts since the last call. See :meth:`.loader.Loader.read_counts`."""
        counts, self._counts = self._counts, dict.fromkeys(self._counts, 0)
        return counts

    def read_seconds(self) -> float:
        """Return the seconds of fetching rows here since the last call, without those that batches came with."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def count(self, rows: RowIds) -> None:
        """Count the rows of a batch that was not made here."""
        self._count([self._absent(rows)])

    def filled(self, batches: Iterator[SampledArrays], together: int, steps: int) -> Generator[FilledBatch]:
        """Yield the batches with features. The rows of so many of them are counted and fetched ``together``."""
        if self._exchange is None:
            yield from self._counted(batches, together)
            return
        self._exchange.begin(-(-steps // together))
        ahead = Ahead(self._fetched(batches, together), self._exchange.leave)
        try:
            yield from chain.from_iterable(ahead)
        finally:
            ahead.close()

    def _counted(self, batches: Iterator[SampledArrays], together: int) -> Iterator[FilledBatch]:
        wanted: list[RowIds] = []
        for batch in batches:
            if self.away:
                wanted.append(self._absent(batch.rows))
            if len(wanted) == together:
                self._count(wanted)
                wanted = []
            yield batch, batch.features if self._elsewhere is None else self._timed(self._read_wanted, batch)
        self._count(wanted)

    def _fetched(self, batches: Iterator[SampledArrays], together: int) -> Iterator[list[FilledBatch]]:
        while window := list(islice(batches, together)):
            yield self._timed(self._fetched_together, window)

    def _fetched_together(self, window: list[SampledArrays]) -> list[FilledBatch]:
        assert self._exchange is not None
        rows = self._count([self._absent(batch.rows) for batch in window])
        found = self._fetch(rows, self.features, self._none)
        self._counts["remote_bytes"] += self._exchange.read_bytes()
        return [(batch, self._filled(batch, rows, found)) for batch in window]

    def _timed(self, work: Callable[[Work], Result], on: Work) -> Result:
        start = time.perf_counter()
        done = work(on)
        self._seconds += time.perf_counter() - start
        return done

    def _filled(self, batch: SampledArrays, rows: RowIds, found: Array) -> Array:
        if self._elsewhere is not None:
            x = self._read_wanted(batch)
            put(x, self._wanted(batch), rows, found)
            return x
        x = self._none if batch.features is None else batch.features
        put(x, batch.rows, rows, found)
        put(x, batch.rows, self._cached, self._values)
        return x

    def _read_wanted(self, batch: SampledArrays) -> Array:
        return self.read(self._wanted(batch))

    def _wanted(self, batch: SampledArrays) -> RowIds:
        """Return the rows of the nodes without those that are left out."""
        assert self._elsewhere is not None
        return batch.rows[~among(batch.rows, self._elsewhere)]

    def _absent(self, rows: RowIds) -> RowIds:
        """Return the distinct rows of the parts that are away. They ascend."""
        distinct = np.unique(rows)
        bounds = np.searchsorted(distinct, self._starts)
        return np.concatenate([distinct[:0], *(distinct[bounds[p] : bounds[p + 1]] for p in self.away)])

    def _count(self, wanted: Sequence[RowIds]) -> RowIds:
        """Count the distinct rows of some batches, and return those that have to be fetched."""
        if not wanted:
            return np.empty(0, np.uint32)
        rows = np.unique(np.concatenate(wanted)) if len(wanted) > 1 else wanted[0]
        if len(self._cached):
            fetched = rows[~among(rows, self._cached)]
            self._counts["cached_rows"] += len(rows) - len(fetched)
            rows = fetched
        self._counts["remote_rows"] += len(rows)
        if self._exchange is None:
            self._counts["remote_bytes"] += len(rows) * self.row_bytes
        return rows

    def complete(self, rows: RowIds, x: Array | None, features: _core.Features | None) -> Array:
        """Return ``x`` with the rows of other ranks. All ranks have to call it, also without rows. It is not counted.

        Parameters
        ----------
        rows : numpy.ndarray
            Row of each item of ``x``.
        x : numpy.ndarray or None
            Values of the rows that are here. None if there are no rows.
        features : _core.Features or None
            Values of the rows that are here. Answers to the other ranks are read from them.
        """
        x = np.empty((0, 0), np.float32) if x is None else x
        wanted = self._absent(rows)
        put(x, rows, wanted, self._fetch(wanted, features, x[:0]))
        return x

    def _fetch(self, rows: RowIds, features: _core.Features | None, none: Array) -> Array:
        """Return rows of other ranks, and answer theirs. ``none`` are no rows."""
        assert self._exchange is not None
        return self._exchange.fetch(rows, lambda asked: none if features is None else features.gather(asked))

    def close(self) -> None:
        """End the connections to other ranks."""
        if self._exchange is not None:
            self._exchange.close()


def put(x: Array, rows: RowIds, keys: RowIds, values: Array) -> None:
    """Copy the values of those rows that are among the keys, which ascend."""
    if len(keys):
        found = np.flatnonzero(among(rows, keys))
        x[found] = values[np.searchsorted(keys, rows[found])]
