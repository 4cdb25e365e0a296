"""Messages between the processes, and their bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

MESSAGE_BYTES = 16 << 20
"""Largest message. Longer ones are sent in pieces, so that buffers stay small."""


class Pending(Protocol):
    """Pending messages."""

    def wait(self) -> None:
        """Wait until all are received and sent."""


class Wire(Protocol):
    """Messages of a process to the others. Two processes post the messages between them in the same order.

    Attributes
    ----------
    rank, size : int
        Number of this process, and of all processes.
    sent, received : int
        Bytes of vertices and their gradients since they were last set to 0.
    """

    rank: int
    size: int
    sent: int
    received: int

    def post(self, out: Mapping[int, Tensor], into: Mapping[int, Tensor]) -> Pending:
        """Begin to send and receive one tensor per peer. Tensors must be contiguous and not empty."""

    def subgroups(self, members: Sequence[Sequence[int]]) -> None:
        """Create the groups for broadcasts and reductions. All processes must pass the same ones."""

    def broadcast(self, x: Tensor, source: int, readers: Sequence[int]) -> None:
        """Copy ``x`` of ``source`` into ``x`` of the readers. Other processes need not call."""

    def reduce(self, x: Tensor, root: int, writers: Sequence[int]) -> None:
        """Add ``x`` of all writers to that of ``root``. Other processes need not call."""

    def total(self, x: Tensor) -> Tensor:
        """Sum over all processes, in place. The bytes are not counted."""


class _Works:
    def __init__(self, works: list[dist.Work], tensors: list[Tensor]) -> None:
        self._works, self._tensors = works, tensors  # the tensors must live until they are sent

    def wait(self) -> None:
        for work in self._works:
            work.wait()


class Group:
    """The processes of ``torch.distributed``."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.sent = self.received = 0
        self._counts: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._groups: dict[tuple[int, ...], dist.ProcessGroup] = {}

    def post(self, out: Mapping[int, Tensor], into: Mapping[int, Tensor]) -> _Works:
        """Begin to receive, then to send, so that no sender waits for a buffer."""
        self.sent += sum(map(_bytes, out.values()))
        self.received += sum(map(_bytes, into.values()))
        if any(x.is_cuda for x in (*out.values(), *into.values())):
            pairs = [(dist.irecv, x, peer) for peer, x in into.items()]
            pairs += [(dist.isend, x, peer) for peer, x in out.items()]
            works = dist.batch_isend_irecv([dist.P2POp(*pair) for pair in pairs]) if pairs else []
        else:
            works = [dist.irecv(x, peer, tag=self._tag("from", peer)) for peer, x in into.items()]
            works += [dist.isend(x, peer, tag=self._tag("to", peer)) for peer, x in out.items()]
        return _Works(works, [*out.values(), *into.values()])

    def _tag(self, way: str, peer: int) -> int:
        """Return the number of a message between two processes. Both ends count in the same way."""
        self._counts[way, peer] = (self._counts[way, peer] + 1) % (1 << 20)
        return self._counts[way, peer]

    def subgroups(self, members: Sequence[Sequence[int]]) -> None:
        """Create the groups for broadcasts and reductions. All processes must pass the same ones."""
        for group in members:
            key = tuple(sorted(group))
            if len(key) > 1 and key not in self._groups:
                self._groups[key] = dist.new_group(list(key))

    def broadcast(self, x: Tensor, source: int, readers: Sequence[int]) -> None:
        """Copy ``x`` of ``source`` to the readers."""
        others = set(readers) - {source}
        if not others or not x.numel():
            return
        if self.rank == source:
            self.sent += len(others) * _bytes(x)
        else:
            self.received += _bytes(x)
        dist.broadcast(x, source, group=self._groups[tuple(sorted({source, *others}))])

    def reduce(self, x: Tensor, root: int, writers: Sequence[int]) -> None:
        """Sum at ``root``."""
        others = set(writers) - {root}
        if not others or not x.numel():
            return
        if self.rank == root:
            self.received += len(others) * _bytes(x)
        else:
            self.sent += _bytes(x)
        dist.reduce(x, root, group=self._groups[tuple(sorted({root, *others}))])

    def total(self, x: Tensor) -> Tensor:
        """Sum over all processes, in place."""
        if self.size > 1:
            dist.all_reduce(x)
        return x


def _bytes(x: Tensor) -> int:
    return x.numel() * x.element_size()


def rows_of_messages(x: Tensor) -> int:
    """Return the number of rows of a tensor in one message."""
    return max(1, MESSAGE_BYTES // max(1, x[:1].numel() * x.element_size()))


def like_rows(x: Tensor, rows: int) -> Tensor:
    """Return an uninitialized tensor with rows like those of ``x``."""
    return torch.empty((rows, *x.shape[1:]), dtype=x.dtype, device=x.device)


class NoWire:
    """The wire of a single process."""

    rank, size = 0, 1
    sent = received = 0

    def post(self, out: Mapping[int, Tensor], into: Mapping[int, Tensor]) -> Pending:
        """Do nothing."""
        return _Works([], [])

    def subgroups(self, members: Sequence[Sequence[int]]) -> None:
        """Do nothing."""

    def broadcast(self, x: Tensor, source: int, readers: Sequence[int]) -> None:
        """Do nothing."""

    def reduce(self, x: Tensor, root: int, writers: Sequence[int]) -> None:
        """Do nothing."""

    def total(self, x: Tensor) -> Tensor:
        """Return ``x``."""
        return x
