"""Rows that are held in memory."""

from __future__ import annotations

import numpy as np

from .index import ABSENT, RowIndex
from .source import Array, RowIds


class Cached:
    """Rows in memory.

    Parameters
    ----------
    index : RowIndex
        Which rows.
    values : numpy.ndarray
        These rows.
    """

    def __init__(self, index: RowIndex, values: Array) -> None:
        self._index, self._values = index, values
        self.dtype, self.row_shape = values.dtype, values.shape[1:]

    def rows(self, ids: RowIds) -> Array:
        """Return the rows."""
        x = np.empty((len(ids), *self.row_shape), self.dtype)
        self.put(x, ids)
        return x

    def put(self, x: Array, ids: RowIds) -> None:
        """Copy those of the rows that are here to their places in ``x``."""
        places = self._index.places(ids)
        found = np.flatnonzero(places != ABSENT)
        x[found] = self._values[places[found]]
