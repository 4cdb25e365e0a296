"""Where rows are among those that a source holds."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ... import _core
from ...core.pairs import located
from .source import RowIds

ABSENT = 2**32 - 1
"""The place of a row that is not there."""

_SHARE = 32
"""A table takes at most one part in so many of the memory that is free."""


class RowIndex:
    """The places of rows among some, by a table of 4 bytes per row of the topology or, if it is large, by a search.

    Parameters
    ----------
    ids : numpy.ndarray
        uint32: the rows that are there. They ascend.
    num_rows : int, optional
        Rows of the topology. Without it there is no table: it pays after several batches.
    """

    def __init__(self, ids: RowIds, num_rows: int = 0) -> None:
        self.ids, self._table = ids, None
        if len(ids) and num_rows and 4 * num_rows <= _core.memory_budget() // _SHARE:
            self._table = np.full(num_rows, ABSENT, np.uint32)
            self._table[ids] = np.arange(len(ids), dtype=np.uint32)

    def places(self, rows: RowIds) -> npt.NDArray[np.int64]:
        """Return the place of each row, or :data:`ABSENT`."""
        if self._table is not None:
            return self._table[rows].astype(np.int64)
        found, places = located(rows, self.ids)
        places[~found] = ABSENT
        return places

    def absent(self, rows: RowIds) -> RowIds:
        """Return the rows that are not there."""
        return rows[self.places(rows) == ABSENT]
