"""Totals that come late (cd-r): messages have r epochs to arrive, and each vertex takes part in every r-th epoch.

The vertices are split into r bins. In epoch e those of the bin e mod r take part: leaves post their sums up, roots
add what their leaves posted r epochs ago to their own current sums, and post that down; leaves replace theirs by what
the root posted r epochs ago. All other copies, and the bin itself until its first messages have come, make do with the
sums over their own edges, and take means over these. So an epoch sends 1/r of what a delay of 0 does, and nobody waits
for messages of the same epoch. Gradients go the same way, with their own messages.

A vertex is in the same bin at all its copies, so that its total is one of all copies. (In the published program bins go
by the place in the list that a leaf and a root share, and a vertex with several leaves may have them in several bins.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...errors import ParameterError
from ..full_graph.clock import EXCHANGE, Clock
from ..full_graph.wire import Pending, Wire, like_rows
from .local import Copies

Lists = Mapping[int, Tensor]


def bins_of(vertices: Tensor, count: int) -> Tensor:
    """Return the bin of each vertex: scattered, so that bins are equally large whatever the ids mean."""
    scattered = vertices.cpu().numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bins = (scattered >> np.uint64(32)) % np.uint64(count)
    return torch.from_numpy(bins.astype(np.int64)).to(vertices.device)


@dataclass
class _Posted:
    """Messages that were posted in an epoch, and the rows that they are going to fill."""

    epoch: int
    pending: Pending
    rows: Lists


class _Pipe:
    """Messages under way in one direction, in the order in which they were posted."""

    def __init__(self, wire: Wire, clock: Clock) -> None:
        self._wire, self._clock = wire, clock
        self._posted: deque[_Posted] = deque()

    def post(self, epoch: int, x: Tensor, out: Lists, into: Lists) -> None:
        """Send rows of ``x`` on their way."""
        with self._clock.timed(EXCHANGE):
            rows = {peer: like_rows(x, len(ids)) for peer, ids in into.items()}
            pending = self._wire.post({peer: x[ids] for peer, ids in out.items()}, rows)
            self._posted.append(_Posted(epoch, pending, rows))

    def take(self, epoch: int) -> Lists | None:
        """Return the rows that were posted in an epoch; None if none were."""
        if not self._posted or self._posted[0].epoch != epoch:
            return None
        with self._clock.timed(EXCHANGE):
            posted = self._posted.popleft()
            posted.pending.wait()
            return posted.rows

    def drain(self) -> None:
        """Wait for all that is under way."""
        while self._posted:
            self._posted.popleft().pending.wait()


class Delayed:
    """The totals of one layer; its messages of an epoch are consumed ``delay`` epochs later."""

    complete = False

    def __init__(self, copies: Copies, delay: int, wire: Wire, clock: Clock) -> None:
        self._delay = delay
        bins = bins_of(copies.vertices, delay)
        self._bins = bins
        self._up = [_of_bin(copies.up, bins, number) for number in range(delay)]
        self._down = [_of_bin(copies.down, bins, number) for number in range(delay)]
        self._pipes = {
            (way, up): _Pipe(wire, clock) for way in ("values", "gradients") for up in (True, False)
        }
        self._all, self._here = copies.degree, copies.local_degree
        self._is_root = torch.arange(len(bins), device=bins.device) < copies.num_roots
        self._epoch = self._first = 0

    def begin(self, epoch: int, first: int) -> None:
        """Get ready for an epoch of a training that began with the epoch ``first``."""
        self._epoch, self._first = epoch, first

    @property
    def degree(self) -> Tensor:
        """How many in-edges the total of each copy includes in this epoch: all of them once messages have come."""
        age = self._epoch - self._first
        reached = torch.where(self._is_root, age >= self._delay, age >= 2 * self._delay)
        included = reached & (self._bins == self._epoch % self._delay)
        return torch.where(included, self._all, self._here)

    def total(self, x: Tensor, last: bool) -> Tensor:
        """Return the totals as far as they are known; ``x`` is changed."""
        total: Tensor = _Total.apply(x, self, last)
        return total

    def largest(self, x: Tensor) -> Tensor:
        """Refuse: sums of attention from different epochs have different scales."""
        raise ParameterError(
            "delay: attention is relative to the largest score of all neighbours in this epoch, which delayed sums do "
            'not know; use delay=0 or exchange="never", or a model without attention'
        )

    def mix(self, x: Tensor, way: str, up: bool, down: bool) -> None:
        """Let late sums into ``x``, and post the current ones."""
        number = self._epoch % self._delay
        leaves, roots = self._up[number], self._down[number]
        if up:
            self._pipes[way, True].post(self._epoch, x, leaves, roots)
            came = self._pipes[way, True].take(self._epoch - self._delay)
            for peer, rows in (came or {}).items():
                x.index_add_(0, roots[peer], rows)
            if came is None:  # no totals yet that could go down
                return
        if down:
            self._pipes[way, False].post(self._epoch, x, roots, leaves)
            came = self._pipes[way, False].take(self._epoch - self._delay)
            for peer, rows in (came or {}).items():
                x.index_copy_(0, leaves[peer], rows)

    def drain(self) -> None:
        """Wait for all messages, so that no process ends while another one still writes to it."""
        for pipe in self._pipes.values():
            pipe.drain()


def _of_bin(lists: Lists, bins: Tensor, number: int) -> dict[int, Tensor]:
    found = {peer: ids[bins[ids] == number] for peer, ids in lists.items()}
    return {peer: ids for peer, ids in found.items() if len(ids)}


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, totals: Delayed, last: bool) -> Tensor:
        ctx.totals, ctx.last = totals, last
        ctx.mark_dirty(x)
        totals.mix(x, "values", up=True, down=not last)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        mixed = gradient.clone(memory_format=torch.contiguous_format)
        ctx.totals.mix(mixed, "gradients", up=not ctx.last, down=True)
        return mixed, None, None
