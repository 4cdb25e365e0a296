"""Rows that are held in memory."""

from __future__ import annotations

import numpy as np

from ...core.pairs import among
from .source import Array, RowIds


class Cached:
    """Rows in memory.

    Parameters
    ----------
    ids : numpy.ndarray
        uint32: which rows. They ascend.
    values : numpy.ndarray
        These rows.
    """

    def __init__(self, ids: RowIds, values: Array) -> None:
        self.ids, self._values = ids, values
        self.dtype, self.row_shape = values.dtype, values.shape[1:]

    def rows(self, ids: RowIds) -> Array:
        """Return the rows."""
        found: Array = self._values[np.searchsorted(self.ids, ids)]
        return found

    def put(self, x: Array, ids: RowIds) -> None:
        """Copy those of the rows that are here to their places in ``x``."""
        if len(self.ids):
            found = np.flatnonzero(among(ids, self.ids))
            x[found] = self.rows(ids[found])
