"""Totals over all copies of a vertex, at every copy.

Leaves send their values up to their root. The root adds them and sends the total down. This map S of the values at all
copies is linear and symmetric, so the gradients go the same way: backward(S) = S. After the last layer only roots are
needed, so totals do not go down, and gradients do not go up.

Messages are at most :data:`~fastpart.train.full_graph.wire.MESSAGE_BYTES` long. Buffers hold one message per process
for any number of vertices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from ..clock import EXCHANGE, Clock
from ..full_graph.wire import Lists, Wire, longest_of, swapped
from .local import Copies

Put = Callable[[Tensor, Tensor], object]
"""Called with the ids of vertices and their received rows."""


class Totals(Protocol):
    """The way in which the copies of vertices get the sums over all edges.

    Attributes
    ----------
    complete : bool
        Whether the totals always include everything.
    degree : torch.Tensor
        In-edges in the total of each copy in this epoch, int64.
    """

    complete: bool

    @property
    def degree(self) -> Tensor: ...  # noqa: D102

    def total(self, x: Tensor, last: bool) -> Tensor:
        """Return the sums over all edges, given those over the edges here. After the last layer, only at roots."""

    def largest(self, x: Tensor) -> Tensor:
        """Return the largest of each number over all copies, without a gradient."""


class ExactTotals:
    """Every copy gets the total in the same epoch."""

    complete = True

    def __init__(self, copies: Copies, wire: Wire, clock: Clock) -> None:
        self._up, self._down, self._wire, self._clock = copies.up, copies.down, wire, clock
        self._longest = longest_of(wire, copies.up)
        self.degree = copies.degree

    def total(self, x: Tensor, last: bool) -> Tensor:
        """Return the totals, in place of ``x``."""
        total: Tensor = _Total.apply(x, self, last)
        return total

    def largest(self, x: Tensor) -> Tensor:
        """Return the largest over all copies."""
        largest = x.detach().clone()

        def put(ids: Tensor, rows: Tensor) -> None:
            ends = ids.view(-1, *[1] * (rows.dim() - 1)).expand_as(rows)
            largest.scatter_reduce_(0, ends, rows, "amax")

        self.up(largest, put)
        self.down(largest)
        return largest

    def up(self, x: Tensor, put: Put | None = None) -> None:
        """Send the rows of leaves to their roots. ``put`` combines them, by default as a sum."""
        self._move(x, self._up, self._down, put or (lambda ids, rows: x.index_add_(0, ids, rows)))

    def down(self, x: Tensor) -> None:
        """Send the rows of roots to their leaves."""
        self._move(x, self._down, self._up, lambda ids, rows: x.index_copy_(0, ids, rows))

    def _move(self, x: Tensor, out: Lists, into: Lists, put: Put) -> None:
        with self._clock.timed(EXCHANGE):
            for lists, rows in swapped(self._wire, x, out, into, self._longest):
                put(lists.ids, rows)


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, exchange: ExactTotals, last: bool) -> Tensor:
        ctx.exchange, ctx.last = exchange, last
        ctx.mark_dirty(x)
        exchange.up(x)
        if not last:
            exchange.down(x)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        total = gradient.clone(memory_format=torch.contiguous_format)
        if not ctx.last:
            ctx.exchange.up(total)
        ctx.exchange.down(total)
        return total, None, None


class LocalTotals:
    """Every copy keeps its own sums, without messages (0c)."""

    complete = False

    def __init__(self, copies: Copies) -> None:
        self.degree = copies.local_degree

    def total(self, x: Tensor, last: bool) -> Tensor:
        """Return the sums over the edges here."""
        return x

    def largest(self, x: Tensor) -> Tensor:
        """Return the largest over the edges here."""
        return x.detach()
