"""Helpers for rank 0 of ``torch.distributed``. Without a process group, this process is rank 0 of 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def world_size() -> int:
    """Return the number of processes."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this process."""
    return dist.get_rank() if dist.is_initialized() else 0


def is_first() -> bool:
    """Return whether this is rank 0."""
    return rank() == 0


def from_first(value: Any) -> Any:
    """Return the value of rank 0 in all processes."""
    if world_size() == 1:
        return value
    values = [value]
    dist.broadcast_object_list(values)
    return values[0]


def total(x: Tensor) -> Tensor:
    """Return the sum over all processes, in place."""
    if world_size() > 1:
        dist.all_reduce(x)
    return x


def of_all(numbers: Mapping[str, float]) -> dict[str, Tensor]:
    """Return each number of all processes, float64 of shape (processes,)."""
    table = torch.zeros(world_size(), len(numbers), dtype=torch.float64)
    table[rank()] = torch.tensor(list(numbers.values()), dtype=torch.float64)
    return dict(zip(numbers, total(table).unbind(1), strict=True))


def largest(x: Tensor) -> Tensor:
    """Return the elementwise maximum over all processes, in place."""
    if world_size() > 1:
        dist.all_reduce(x, dist.ReduceOp.MAX)
    return x


def device() -> torch.device:
    """Return where this process computes: a GPU if its group has NCCL, else the CPU."""
    if dist.is_initialized() and "nccl" in dist.get_backend_config():
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def barrier() -> None:
    """Wait for all processes."""
    if world_size() > 1:
        dist.barrier()
