"""Batch normalisation over the rows of all workers.

Each worker adds up its rows and their squares in float64, and all of them add up the sums, in the forward pass and in
the backward pass. So copies of a network normalise alike, by the mean and the variance of all rows, as
``torch.nn.SyncBatchNorm`` does on GPUs. Where each vertex is in one worker, that is the result of a single process.
Vertices that several workers sample in a step count once for each of them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ..ranks import total


class BatchNorm(nn.BatchNorm1d):
    """Batch normalisation by the statistics of all workers. All of them have to call it equally often.

    Attributes
    ----------
    rows, own : int
        An input with so many rows counts by its first ``own`` rows. The others are copies of rows of other workers.
    """

    rows = own = -1

    def forward(self, x: Tensor) -> Tensor:
        """Return the rows, normalised."""
        self._check_input_dim(x)
        if not (self.training or self.running_mean is None):
            return super().forward(x)
        dims = [0, *range(2, x.dim())]
        counted = (x[: self.own] if len(x) == self.rows else x).double()
        count = counted.new_full((1,), counted.numel() // x.shape[1])
        sums: Tensor = _Total.apply(torch.cat([counted.sum(dims), counted.square().sum(dims), count]))
        mean, squares = (sums[:-1] / sums[-1].detach()).chunk(2)
        variance = (squares - mean.square()).clamp(min=0)
        if self.training and self.running_mean is not None:
            self._follow(mean.detach(), variance.detach(), sums[-1].item())
        shape = (1, -1, *[1] * (x.dim() - 2))
        normal = (x - mean.view(shape)) * torch.rsqrt(variance + self.eps).view(shape)
        if self.affine:
            normal = normal * self.weight.view(shape) + self.bias.view(shape)
        return normal.to(x.dtype)

    @torch.no_grad()
    def _follow(self, mean: Tensor, variance: Tensor, count: float) -> None:
        """Let the statistics that scores are computed with follow those of a step."""
        assert self.num_batches_tracked is not None
        self.num_batches_tracked.add_(1)
        share = 1 / self.num_batches_tracked.item() if self.momentum is None else self.momentum
        unbiased = variance * (count / max(count - 1, 1))
        for running, now in ((self.running_mean, mean), (self.running_var, unbiased)):
            assert running is not None
            running.lerp_(now.to(running.dtype), share)


class _Total(torch.autograd.Function):
    """The sum over all workers. Its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return total(x.clone())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return total(gradient.clone())


def synchronise(network: nn.Module) -> None:
    """Let the batch normalisations of a network use the statistics of all workers. Its weights keep their names."""
    for module in network.modules():
        if type(module) is nn.BatchNorm1d:
            module.__class__ = BatchNorm


def synchronised(network: nn.Module) -> list[BatchNorm]:
    """Return the layers that use the statistics of all workers."""
    return [module for module in network.modules() if isinstance(module, BatchNorm)]
