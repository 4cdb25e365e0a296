"""Learned rows of vertices: batches get them from their owners, and gradients go back the same way."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from .counts import Counts
from .owners import Exchange, Owners
from .source import Array, RowIds, RowSource


class Table(RowSource, Protocol):
    """The learned rows of the parts of a rank."""

    def step(self, ids: RowIds, gradient: Tensor) -> None:
        """Change distinct rows by their gradients."""


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
        rows, received = self._owners.send_back(gradient)
        ids, places = np.unique(rows, return_inverse=True)
        total = torch.zeros(len(ids), *self.row_shape, dtype=torch.from_numpy(received).dtype)
        # The order of the ranks is that of the additions, so a run is repeatable.
        total.index_add_(0, torch.from_numpy(places), torch.from_numpy(received))
        self._own.step(ids, total)
