"""Totals over all copies of a vertex, at every copy.

Leaves send their values up to their root. The root adds them and sends the total down. This map S of the values at all
copies is linear and symmetric, so the gradients go the same way: backward(S) = S. After the last layer only roots are
needed, so totals do not go down, and gradients do not go up.

Messages are at most :data:`~fastpart.train.full_graph.wire.MESSAGE_BYTES` long. Buffers hold one message per peer for
any number of vertices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

from ..clock import EXCHANGE, Clock
from ..full_graph.wire import Wire, like_rows, rows_of_messages
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
        self.degree = copies.degree

    def total(self, x: Tensor, last: bool) -> Tensor:
        """Return the totals, in place of ``x``."""
        total: Tensor = _Total.apply(x, self, last)
        return total

    def largest(self, x: Tensor) -> Tensor:
        """Return the largest over all copies."""
        largest = x.detach().clone()
        self.up(largest, lambda ids, rows: largest.index_copy_(0, ids, torch.maximum(largest[ids], rows)))
        self.down(largest)
        return largest

    def up(self, x: Tensor, put: Put | None = None) -> None:
        """Send the rows of leaves to their roots. ``put`` combines them, by default as a sum."""
        with self._clock.timed(EXCHANGE):
            self._move(x, self._up, self._down, put or (lambda ids, rows: x.index_add_(0, ids, rows)))

    def down(self, x: Tensor) -> None:
        """Send the rows of roots to their leaves."""
        with self._clock.timed(EXCHANGE):
            self._move(x, self._down, self._up, lambda ids, rows: x.index_copy_(0, ids, rows))

    def _move(self, x: Tensor, out: Mapping[int, Tensor], into: Mapping[int, Tensor], put: Put) -> None:
        step = rows_of_messages(x)
        longest = max((len(ids) for ids in (*out.values(), *into.values())), default=0)
        for start in range(0, longest, step):
            there = _pieces(out, start, step)
            here = _pieces(into, start, step)
            rows = {peer: like_rows(x, len(ids)) for peer, ids in here.items()}
            self._wire.post({peer: x[ids] for peer, ids in there.items()}, rows).wait()
            for peer, ids in here.items():
                put(ids, rows[peer])


def _pieces(lists: Mapping[int, Tensor], start: int, step: int) -> dict[int, Tensor]:
    return {peer: ids[start : start + step] for peer, ids in lists.items() if start < len(ids)}


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
