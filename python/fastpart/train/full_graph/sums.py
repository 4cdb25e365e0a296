"""Timed sums over the in-edges of this process, and their gradients."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .clock import AGGREGATION, Clock
from .kernels import Kernel


def summed(x: Tensor, kernel: Kernel, clock: Clock) -> Tensor:
    """Return the sum of the rows of the sources at each end."""
    total: Tensor = _Sum.apply(x, kernel, clock)
    return total


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, kernel: Kernel, clock: Clock) -> Tensor:
        ctx.kernel, ctx.clock = kernel, clock
        with clock.timed(AGGREGATION):
            return kernel.sum(x.contiguous())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        with ctx.clock.timed(AGGREGATION):
            return ctx.kernel.back(gradient.contiguous()), None, None
