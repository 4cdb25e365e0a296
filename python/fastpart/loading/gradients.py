"""Gradients of all ranks, added."""

from __future__ import annotations

from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import Tensor

from ..core.calls import called_well


@called_well
def sum_gradients(parameters: Iterable[Tensor], group: dist.ProcessGroup | None = None) -> None:
    """Add the gradients of all ranks, in place. Call it between ``backward`` and the step of the optimizer.

    If every rank divides the sum of its losses by ``batch.global_size``, the result is the gradient of the mean loss of
    the global batch, however its seeds are dealt to the ranks. ``DistributedDataParallel`` divides by the number of
    ranks instead, which weighs seeds of ranks with few of them more.

    Parameters
    ----------
    parameters : iterable of torch.Tensor
        As ``model.parameters()``. A parameter without a gradient, as on a rank without seeds, counts as 0.
    group : torch.distributed.ProcessGroup, optional
        Default: all ranks. Without ``torch.distributed`` there is one, and nothing is done.

    Examples
    --------
    >>> import torch
    >>> from fastpart.loading import sum_gradients
    >>> model = torch.nn.Linear(2, 1)
    >>> model(torch.ones(3, 2)).sum().backward()
    >>> sum_gradients(model.parameters())
    >>> model.bias.grad
    tensor([3.])
    """
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size(group) == 1:
        return
    alike: dict[tuple[torch.dtype, torch.device], list[Tensor]] = {}
    for parameter in parameters:
        if parameter.requires_grad:
            alike.setdefault((parameter.dtype, parameter.device), []).append(parameter)
    for those in alike.values():
        for parameter in those:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        flat = torch.cat([parameter.grad.reshape(-1) for parameter in those])
        dist.all_reduce(flat, group=group)
        pieces = flat.split([parameter.numel() for parameter in those])
        for parameter, piece in zip(those, pieces, strict=True):
            parameter.grad.copy_(piece.reshape(parameter.shape))
