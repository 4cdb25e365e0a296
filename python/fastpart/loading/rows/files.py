"""Rows in the files of parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import _core
from .source import Array, RowIds


class Files:
    """Rows in the files of the parts that are here.

    Parameters
    ----------
    features : _core.Features or None
        The files. None if no part is here.
    dtype : numpy.dtype
        Type of the features.
    row_shape : tuple of int
        Shape of a row.

    Attributes
    ----------
    features : _core.Features or None
        The files, for the threads of the core, which read rows of them while they sample.
    """

    def __init__(
        self, features: _core.Features | None, dtype: np.dtype[Any], row_shape: tuple[int, ...]
    ) -> None:
        self.features, self.dtype, self.row_shape = features, dtype, row_shape

    def rows(self, ids: RowIds) -> Array:
        """Return the rows."""
        if self.features is None:
            return np.empty((len(ids), *self.row_shape), self.dtype)
        return self.features.gather(ids)
