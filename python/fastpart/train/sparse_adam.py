"""Adam for the rows of a table that a step has used."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class SparseAdam:
    """Adam that changes only the rows with a gradient, with the same numbers as ``torch.optim.SparseAdam``.

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

    def step(self, rows: Tensor, gradient: Tensor) -> None:
        """Make a step, given distinct rows and their gradients."""
        self.steps += 1
        first, second = self._betas
        mean, square = self.mean[rows], self.square[rows]
        mean += (gradient - mean) * (1 - first)
        square += (gradient * gradient - square) * (1 - second)
        self.mean[rows], self.square[rows] = mean, square
        size = self.lr * math.sqrt(1 - second**self.steps) / (1 - first**self.steps)
        self.values[rows] += -size * (mean / (square.sqrt() + self._eps))
