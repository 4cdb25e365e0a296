"""Messages between the processes, and their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor

WAITS_FOR_PEERS = True
"""An error from here may be the fault of another process."""

MESSAGE_BYTES = 16 << 20
"""Largest message. Longer ones are sent in pieces, so that buffers stay small."""


class Lists:
    """Rows that a process sends to each process, or receives from it, by their ids.

    Attributes
    ----------
    ids : torch.Tensor
        int64. Those of process 0 come first.
    counts : list of int
        Number of ids of each process.
    """

    def __init__(self, of_processes: Sequence[Tensor]) -> None:
        self.ids, self.counts = torch.cat(tuple(of_processes)), [len(ids) for ids in of_processes]

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.ids.split(self.counts))

    def piece(self, start: int, stop: int) -> Lists:
        """Return a range of each list."""
        if start == 0 and stop >= max(self.counts):
            return self
        return Lists([ids[start:stop] for ids in self])


class PendingSwap:
    """Rows of vertices on their way between the processes."""

    def __init__(self, x: Tensor, received: Tensor, work: dist.Work | None = None) -> None:
        self._x, self._received, self._work = x, received, work  # the rows must live until they are sent

    def wait(self) -> Tensor:
        """Wait until all are received and sent. Return the received rows, those of process 0 first."""
        if self._work is not None:
            self._work.wait()
        return self._received


class Wire(Protocol):
    """Messages of a process to the others.

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

    def swap(self, x: Tensor, out: Sequence[int], into: Sequence[int], late: bool = False) -> PendingSwap:
        """Begin to send so many rows of ``x`` to each process, and to receive so many. All processes must call.

        Messages that are awaited ``late`` go in a subgroup of all processes, so that others do not wait for them.
        """

    def subgroups(self, members: Sequence[Sequence[int]]) -> None:
        """Create the groups for all but swaps and totals. All processes must pass the same ones."""

    def broadcast(self, x: Tensor, source: int, readers: Sequence[int]) -> None:
        """Copy ``x`` of ``source`` into ``x`` of the readers. Other processes need not call."""

    def reduce(self, x: Tensor, root: int, writers: Sequence[int]) -> None:
        """Add ``x`` of all writers to that of ``root``. Other processes need not call."""

    def total(self, x: Tensor) -> Tensor:
        """Sum over all processes, in place. The bytes are not counted."""


class Group:
    """The processes of ``torch.distributed``. In subgroups, too, they wait for each other for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._timeout = timedelta(seconds=seconds)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.sent = self.received = 0
        self._groups: dict[tuple[int, ...], dist.ProcessGroup] = {}

    def swap(self, x: Tensor, out: Sequence[int], into: Sequence[int], late: bool = False) -> PendingSwap:
        """Begin to send and receive rows."""
        received = like_rows(x, sum(into))
        self.sent += _bytes(x)
        self.received += _bytes(received)
        group = self._groups.get(tuple(range(self.size))) if late else None
        work = dist.all_to_all_single(received, x, list(into), list(out), group=group, async_op=True)
        return PendingSwap(x, received, work)

    def subgroups(self, members: Sequence[Sequence[int]]) -> None:
        """Create the groups for all but swaps and totals."""
        for group in members:
            key = tuple(sorted(group))
            if len(key) > 1 and key not in self._groups:
                self._groups[key] = dist.new_group(list(key), timeout=self._timeout)

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


def swapped(wire: Wire, x: Tensor, out: Lists, into: Lists, longest: int) -> Iterator[tuple[Lists, Tensor]]:
    """Send rows of ``x``, and yield lists and rows of what comes, in messages of at most :data:`MESSAGE_BYTES`.

    ``longest`` is the length of the longest list of all processes, which make as many swaps.
    """
    step = rows_of_messages(x)
    for start in range(0, longest, step):
        there, here = (lists.piece(start, start + step) for lists in (out, into))
        yield here, wire.swap(x[there.ids], there.counts, here.counts).wait()


def longest_of(wire: Wire, lists: Lists) -> int:
    """Return the length of the longest list of all processes."""
    lengths = torch.zeros(wire.size, dtype=torch.int64, device=lists.ids.device)
    lengths[wire.rank] = max(lists.counts)
    return int(wire.total(lengths).max())


class NoWire:
    """The wire of a single process."""

    rank, size = 0, 1
    sent = received = 0

    def swap(self, x: Tensor, out: Sequence[int], into: Sequence[int], late: bool = False) -> PendingSwap:
        """Return ``x``."""
        return PendingSwap(x, x)

    def subgroups(self, members: Sequence[Sequence[int]]) -> None:
        """Do nothing."""

    def broadcast(self, x: Tensor, source: int, readers: Sequence[int]) -> None:
        """Do nothing."""

    def reduce(self, x: Tensor, root: int, writers: Sequence[int]) -> None:
        """Do nothing."""

    def total(self, x: Tensor) -> Tensor:
        """Return ``x``."""
        return x
