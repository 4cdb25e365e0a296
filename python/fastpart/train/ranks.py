"""The rank of a process of a training, the seconds of its steps, and its settings of torch.

Without a process group of ``torch.distributed``, this process is rank 0 of 1.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.parameter import is_lazy

from ..loading import Trace


@contextmanager
def torch_settings(threads: int | None, seed: int) -> Iterator[None]:
    """Seed torch and set its threads, and restore both in the end."""
    with torch.random.fork_rng(devices=[]), torch_threads(threads):
        torch.manual_seed(seed)
        yield


@contextmanager
def torch_threads(threads: int | None) -> Iterator[None]:
    """Set the threads of torch, if they are given, and restore them in the end."""
    before = torch.get_num_threads()
    if threads:
        torch.set_num_threads(threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


AGGREGATION, EXCHANGE, SYNCHRONISING = "aggregation", "exchange", "synchronising"
"""Sums over the edges here, messages about vertices, messages about weights."""


class Clock:
    """Seconds by step since the last :meth:`read`.

    Parameters
    ----------
    trace : Trace, optional
        Gets every step.

    Attributes
    ----------
    seconds : dict
        Seconds of each step so far, 0 for others.
    """

    def __init__(self, trace: Trace | None = None) -> None:
        self._trace = trace
        self.seconds: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Count the time of the block."""
        start = Trace.now()
        try:
            yield
        finally:
            self.seconds[step] += (Trace.now() - start) / 1e9
            if self._trace is not None:
                self._trace.span(step, start)

    def read(self) -> defaultdict[str, float]:
        """Return the seconds, and reset them."""
        seconds, self.seconds = self.seconds, defaultdict(float)
        return seconds


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


@torch.no_grad()
def copy_from_first(tensors: Iterable[Tensor]) -> None:
    """Copy the tensors of rank 0 into those of all processes."""
    if world_size() == 1:
        return
    alike = [
        tensor for tensor in tensors if not is_lazy(tensor)
    ]  # a lazy one has no values before its first use
    if not alike:
        return
    flat = torch.cat([tensor.detach().reshape(-1).view(torch.uint8) for tensor in alike])
    dist.broadcast(flat, 0)
    pieces = flat.split([tensor.numel() * tensor.element_size() for tensor in alike])
    for tensor, piece in zip(alike, pieces, strict=True):
        tensor.copy_(piece.clone().view(tensor.dtype).reshape(tensor.shape))


def differing(tensors: Iterable[Tensor]) -> list[int]:
    """Return the ranks whose tensors are not those of rank 0, bit for bit. All processes learn it."""
    if world_size() == 1:
        return []
    digest = hashlib.blake2b(digest_size=8)
    for tensor in tensors:
        if not is_lazy(tensor):
            digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    mine = torch.tensor([int.from_bytes(digest.digest(), "little", signed=True)])
    of_all = [torch.empty_like(mine) for _ in range(world_size())]
    dist.all_gather(of_all, mine)
    return [rank for rank, digest in enumerate(of_all) if digest != of_all[0]]


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
