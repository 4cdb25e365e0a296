"""Rows of features that a compute machine keeps.

A batch worker decides which rows these are, and in which *slots* they lie. So it always knows what is there. The
compute machine obeys, and checks that a slot has the row that the batch worker believes to be there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, get_args

import numpy as np
import numpy.typing as npt

from ....core.pairs import among
from ...method_options import Policy
from .messages import MessageError

POLICIES: tuple[Policy, ...] = get_args(Policy)

RowIds = npt.NDArray[np.uint32]
Slots = npt.NDArray[np.int32]

NONE = np.uint32(2**32 - 1)
"""No row."""


@dataclass(frozen=True)
class Placement:
    """The rows of a message that a compute machine has cached, and those that it keeps of the others, which are sent.

    Attributes
    ----------
    cached : numpy.ndarray
        Mask of the rows that it has. The others are sent.
    slots : numpy.ndarray
        The slots of the rows that it has.
    kept, into : numpy.ndarray
        Which of the rows that are sent it keeps, by their position among them, and in which slots.
    """

    cached: npt.NDArray[np.bool_]
    slots: Slots
    kept: Slots
    into: Slots


class CacheIndex(Protocol):
    """The contents of the cache of a compute machine, as a batch worker tracks them."""

    def place(self, rows: RowIds) -> Placement:
        """Tell what becomes of the distinct rows of a message, which ascend."""


class StaticIndex:
    """A cache of given rows, which ascend. Each is sent when it is needed first, and stays.

    All batch workers share the slots. Each relies on what it has sent itself.
    """

    def __init__(self, rows: RowIds) -> None:
        self._rows, self._sent = rows, np.zeros(len(rows), np.bool_)

    def place(self, rows: RowIds) -> Placement:
        """Tell what becomes of the distinct rows of a message, which ascend."""
        known = among(rows, self._rows)
        slots = np.searchsorted(self._rows, rows[known])
        sent = self._sent[slots]
        cached = known.copy()
        cached[known] = sent
        new = known & ~cached
        self._sent[slots] = True
        return Placement(
            cached, _slots(slots[sent]), _slots(np.flatnonzero(new[~cached])), _slots(slots[~sent])
        )


class LruIndex:
    """A cache of the rows that were used last (LRU). All rows of a message are used at the same time.

    Parameters
    ----------
    first, count : int
        The slots. No other batch worker uses them.
    num_rows : int
        Number of all rows.
    """

    def __init__(self, first: int, count: int, num_rows: int) -> None:
        self._first, self._time = first, 0
        self._slot_of = np.full(num_rows, -1, np.int32)
        self._row_in, self._used = np.full(count, NONE), np.zeros(count, np.int64)

    def place(self, rows: RowIds) -> Placement:
        """Tell what becomes of the distinct rows of a message, which ascend."""
        self._time += 1
        slots = self._slot_of[rows]
        cached = slots >= 0
        self._used[slots[cached]] = self._time
        missing = rows[~cached]
        free = np.flatnonzero(self._used < self._time)
        free = free[np.argsort(self._used[free], kind="stable")[: len(missing)]]
        gone = self._row_in[free]
        self._slot_of[gone[gone != NONE]] = -1
        new = missing[: len(free)]
        self._slot_of[new], self._row_in[free], self._used[free] = free, new, self._time
        kept = np.arange(len(free), dtype=np.int32)
        return Placement(cached, slots[cached] + np.int32(self._first), kept, _slots(free + self._first))


def cache_index(
    policy: Policy, capacity: int, rows: RowIds, worker: int, workers: int, num_rows: int
) -> CacheIndex:
    """Return the index of a batch worker, for a cache of so many rows. A static cache has the given ones."""
    if policy == "static" or not capacity:
        return StaticIndex(rows[:capacity])
    first, end = capacity * worker // workers, capacity * (worker + 1) // workers
    return LruIndex(first, end - first, num_rows)


class Cache:
    """The cache of a compute machine.

    Parameters
    ----------
    values : numpy.ndarray
        Memory for the features of all slots.
    """

    def __init__(self, values: npt.NDArray[Any]) -> None:
        self._values, self._rows = values, np.full(len(values), NONE)

    def fill(
        self, x: npt.NDArray[Any], rows: RowIds, sent: int, slots: Slots, kept: Slots, into: Slots
    ) -> None:
        """Complete the features of the rows of a message, of which the first were ``sent``.

        The others are read from ``slots``. After that, ``kept`` ones of those that were sent go ``into`` slots.
        """
        if len(slots) != len(rows) - sent or len(kept) != len(into):
            raise MessageError("a message has other numbers of rows and slots")
        if not (_within(slots, len(self._rows)) and _within(into, len(self._rows)) and _within(kept, sent)):
            raise MessageError(f"a message names a slot or a row beyond the {len(self._rows)} of the cache")
        if np.any(self._rows[slots] != rows[sent:]):
            raise MessageError("a batch worker believes other rows to be in the cache than there are")
        # mode="clip" writes to x at once. The slots are checked above.
        np.take(self._values, slots, axis=0, out=x[sent:], mode="clip")
        self._values[into], self._rows[into] = x[kept], rows[kept]


def _within(numbers: Slots, end: int) -> bool:
    return not len(numbers) or (int(numbers.min()) >= 0 and int(numbers.max()) < end)


def _slots(numbers: npt.NDArray[Any]) -> Slots:
    return numbers.astype(np.int32)
