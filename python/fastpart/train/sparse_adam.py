"""Adam for the rows of a table that a step has used."""

from __future__ import annotations

import math

import torch
from torch import Tensor

CACHED = 2**15
"""Numbers of a piece of rows that a step takes at once, so that what it computes of them stays in the cache."""


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
        size = self.lr * math.sqrt(1 - second**self.steps) / (1 - first**self.steps)
        piece = max(1, CACHED // self.values.shape[1])
        for at, of_rows in zip(rows.split(piece), gradient.split(piece), strict=True):
            mean, square = self.mean.index_select(0, at), self.square.index_select(0, at)
            mean += (of_rows - mean).mul_(1 - first)
            square += (of_rows * of_rows).sub_(square).mul_(1 - second)
            self.mean.index_copy_(0, at, mean)
            self.square.index_copy_(0, at, square)
            moved = mean.div_(square.sqrt_().add_(self._eps)).mul_(-size)
            self.values.index_copy_(0, at, self.values.index_select(0, at).add_(moved))
