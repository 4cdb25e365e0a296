"""Delayed totals (cd-r): messages have r epochs to arrive, and each vertex takes part in every r-th epoch.

The vertices are split into r bins. In epoch e, bin e mod r takes part. Leaves send their sums to their root. Roots add
the sums that their leaves sent r epochs ago to their own current sums, and send the totals back. Leaves replace their
sums by the total that the root sent r epochs ago. All other copies use the sums and means over their own edges, and so
does the bin until its first messages arrive. So an epoch sends 1/r of the bytes of a delay of 0, and no process waits
for messages of the same epoch. Gradients go the same way, with their own messages.

A vertex is in the same bin at all its copies, so its total includes all copies. (In the published program the bin
depends on the position in the list that a leaf and a root share, so the leaves of a vertex may be in several bins.)
"""

from __future__ import annotations

from collections import deque

import numpy as np
import torch
from torch import Tensor

from .....errors import ParameterError, arg
from ....ranks import EXCHANGE, Clock
from ..wire import Lists, PendingSwap, Wire
from .copies import Copies
from .totals import Totals


def bins_of(vertices: Tensor, count: int) -> Tensor:
    """Return the bin of each vertex. A hash of the id makes bins of equal size."""
    scattered = vertices.cpu().numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bins = (scattered >> np.uint64(32)) % np.uint64(count)
    return torch.from_numpy(bins.astype(np.int64)).to(vertices.device)


class _Pipe:
    """Pending messages in one direction, in order, with their epochs."""

    def __init__(self, wire: Wire, clock: Clock) -> None:
        self._wire, self._clock = wire, clock
        self._posted: deque[tuple[int, PendingSwap]] = deque()

    def post(self, epoch: int, x: Tensor, out: Lists, into: Lists) -> None:
        """Begin to send rows of ``x``."""
        with self._clock.timed(EXCHANGE):
            self._posted.append((epoch, self._wire.swap(x[out.ids], out.counts, into.counts, late=True)))

    def take(self, epoch: int) -> Tensor | None:
        """Return the rows that were sent in an epoch. None if there are none."""
        if not self._posted or self._posted[0][0] != epoch:
            return None
        with self._clock.timed(EXCHANGE):
            return self._posted.popleft()[1].wait()

    def drain(self) -> None:
        """Wait for all pending messages."""
        while self._posted:
            self._posted.popleft()[1].wait()


class DelayedTotals(Totals):
    """The totals of one layer. Messages are used ``delay`` epochs after they were sent."""

    def __init__(self, copies: Copies, delay: int, wire: Wire, clock: Clock) -> None:
        self._delay = delay
        bins = bins_of(copies.vertices, delay)
        self._bins = bins
        self._up = [_of_bin(copies.up, bins, number) for number in range(delay)]
        self._down = [_of_bin(copies.down, bins, number) for number in range(delay)]
        self._pipes = {
            (way, up): _Pipe(wire, clock) for way in ("values", "gradients") for up in (True, False)
        }
        wire.subgroups([range(wire.size)])
        self._all, self._here = copies.degree, copies.local_degree
        self._is_root = torch.arange(len(bins), device=bins.device) < copies.num_own
        self._epoch, self._age = 0, -1

    def begin(self, epoch: int) -> None:
        """Begin an epoch. Once messages have arrived, the totals of its bin include all in-edges."""
        self._epoch, self._age = epoch, self._age + 1
        reached = torch.where(self._is_root, self._age >= self._delay, self._age >= 2 * self._delay)
        included = reached & (self._bins == epoch % self._delay)
        self.degree = torch.where(included, self._all, self._here)

    def largest(self, x: Tensor) -> Tensor:
        """Refuse: sums of attention from different epochs have different scales."""
        raise ParameterError(
            "delay: attention needs the largest score of all neighbours in this epoch, but delayed sums are older. Use "
            f"{arg('delay', 0)} or {arg('exchange', 'never')}, or a model without attention"
        )

    def mix(self, x: Tensor, way: str, up: bool, down: bool) -> None:
        """Send the current sums, and put the delayed ones into ``x``."""
        number = self._epoch % self._delay
        leaves, roots = self._up[number], self._down[number]
        if up:
            self._pipes[way, True].post(self._epoch, x, leaves, roots)
            received = self._pipes[way, True].take(self._epoch - self._delay)
            if received is None:  # there are no totals to send back yet
                return
            x.index_add_(0, roots.ids, received)
        if down:
            self._pipes[way, False].post(self._epoch, x, roots, leaves)
            received = self._pipes[way, False].take(self._epoch - self._delay)
            if received is not None:
                x.index_copy_(0, leaves.ids, received)

    def drain(self) -> None:
        """Wait for all messages, so that no process ends while another process still sends to it."""
        for pipe in self._pipes.values():
            pipe.drain()


def _of_bin(lists: Lists, bins: Tensor, number: int) -> Lists:
    return Lists([ids[bins[ids] == number] for ids in lists])
