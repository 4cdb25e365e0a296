"""Learned rows of vertices: batches get them from their owners, and gradients go back the same way."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

from .counts import Counts
from .owners import Exchange, Owners
from .source import Array, RowIds, RowSource

__all__ = ["Embeddings", "Table"]


def __dir__() -> list[str]:
    return __all__


class Table(RowSource, Protocol):
    """The learned rows of the parts of a rank."""

    def step(self, ids: RowIds, bounds: npt.NDArray[np.int64], gradients: Array) -> None:
        """Change rows by their gradients.

        Parameters
        ----------
        ids : numpy.ndarray
            The rows that each rank used, ascending, those of rank 0 first.
        bounds : numpy.ndarray
            int64: where the rows of each rank start, and the end of the last ones.
        gradients : numpy.ndarray
            A gradient for each of ``ids``. The gradients of a row in several lists are added up in their order.
        """


class Embeddings:
    """The learned rows of all ranks. In every step all ranks call :meth:`rows` and then :meth:`update`.

    Parameters
    ----------
    own : Table
        The rows of this rank.
    exchange : Exchange
        Messages to the other ranks.
    counts : Counts
        Where the bytes of rows and gradients are counted.
    """

    def __init__(self, own: Table, exchange: Exchange, counts: Counts) -> None:
        self._own, self._owners = own, Owners(exchange, own, counts)
        self.dtype, self.row_shape = own.dtype, own.row_shape

    def rows(self, ids: RowIds) -> Array:
        """Return the rows, which ascend."""
        return self._owners.rows(ids)

    def update(self, gradient: Array) -> None:
        """Let the owners of the last rows change them, given the gradient of each."""
        self._own.step(*self._owners.send_back(gradient))
