"""Adam for the rows of a table that a step has used."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from .._core import sparse_adam
from ..loading.rows.source import Array, RowIds


class SparseAdam:
    """Adam that changes only the rows with a gradient, as ``torch.optim.SparseAdam`` does.

    Every operation is rounded as IEEE 754 says. A root of torch may differ in the last bit.

    Attributes
    ----------
    values : torch.Tensor
        The table.
    lr : float
        Learning rate.
    mean, square : torch.Tensor
        Running means of the gradients and of their squares.
    steps : int
        Number of steps so far.
    """

    def __init__(
        self, values: Tensor, lr: float, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ) -> None:
        self.values, self.lr, self._betas, self._eps = values, lr, betas, eps
        self.mean, self.square = torch.zeros_like(values), torch.zeros_like(values)
        self.steps = 0

    def step(self, rows: RowIds, bounds: npt.NDArray[np.int64], gradients: Array, first: int = 0) -> None:
        """Make a step.

        Parameters
        ----------
        rows : numpy.ndarray
            uint32: lists of rows, behind each other, each ascending.
        bounds : numpy.ndarray
            int64: where each list starts, and the end of the last one.
        gradients : numpy.ndarray
            The gradient of each of ``rows``. The gradients of a row in several lists are added up in their order.
        first : int
            Number of the row that is the first of the table.
        """
        self.steps += 1
        of_mean, of_square = self._betas
        size = self.lr * math.sqrt(1 - of_square**self.steps) / (1 - of_mean**self.steps)
        tables = self.values.numpy(), self.mean.numpy(), self.square.numpy()
        sparse_adam(tables, rows, bounds, gradients, first=first, size=size, betas=self._betas, eps=self._eps)
