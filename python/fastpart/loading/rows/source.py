"""What gives rows of features by their number."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

RowIds = npt.NDArray[np.uint32]
Array = npt.NDArray[Any]


class RowSource(Protocol):
    """Rows of features, by their row in the topology.

    Attributes
    ----------
    dtype : numpy.dtype
        Type of the features.
    row_shape : tuple of int
        Shape of a row.
    """

    @property
    def dtype(self) -> np.dtype[Any]: ...  # noqa: D102
    @property
    def row_shape(self) -> tuple[int, ...]: ...  # noqa: D102

    def rows(self, ids: RowIds) -> Array:
        """Return the rows, in an array of their own, of shape ``(len(ids), *row_shape)``.

        Places of rows that the source does not have may hold anything.
        """
