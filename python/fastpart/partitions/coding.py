"""Rows of features with 8 bits per number.

A coded row is a row of uint8. Number ``j`` of it is ``low + step * code[j]``, in float32. By row, the row ends with its
own ``low`` and ``step``, 4 bytes each. By column, each column has its own, in ``feature_columns.npy`` of the directory
or, of features of edges, in ``edge_feature_columns.npy``.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .. import _core

Scale = Literal["row", "column"]
"""What has a scale of its own."""

Codes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

COLUMNS = "feature_columns.npy"
"""float32 of shape (2, width): ``low`` of every column, then ``step`` of every column."""

EDGE_COLUMNS = "edge_feature_columns.npy"
"""``COLUMNS`` of features of edges."""

SCALE_BYTES = 8
"""Bytes at the end of a row that has a scale of its own."""


def row_dtype(width: int) -> np.dtype[Any]:
    """Return the type of a row that has a scale of its own, as it stands in files outside of partition directories."""
    return np.dtype([("codes", "u1", (width,)), ("low", "<f4"), ("step", "<f4")])


class Coding:
    """How rows are coded and decoded.

    Parameters
    ----------
    width : int
        Numbers of a row.
    columns : numpy.ndarray, optional
        ``low`` and ``step`` of every column. Default: each row has its own.
    """

    dtype: np.dtype[Any] = np.dtype(np.uint8)

    def __init__(self, width: int, columns: Floats | None = None) -> None:
        self.width, self.columns = width, columns

    @property
    def row_shape(self) -> tuple[int]:
        """Shape of a coded row."""
        return (self.width + (SCALE_BYTES if self.columns is None else 0),)

    @cached_property
    def core(self) -> _core.Coding:
        """The coding for the core."""
        columns = None if self.columns is None else np.ascontiguousarray(self.columns, np.float32).reshape(-1)
        return _core.Coding(self.width, columns)

    def encode(self, numbers: Floats) -> Codes:
        """Return rows of finite numbers, whose differences are finite, as coded rows."""
        coded = np.empty((len(numbers), *self.row_shape), np.uint8)
        self.core.encode(np.require(numbers, np.float32, ["C", "A"]), coded)
        return coded

    def decode(self, rows: Codes) -> Floats:
        """Return coded rows as numbers."""
        decoded = np.empty((len(rows), self.width), np.float32)
        self.core.decode(np.ascontiguousarray(rows), decoded)
        return decoded
