"""Totals over all copies of a vertex, at every copy.

Leaves send their values up to their root. The root adds them and sends the total down. This map S of the values at all
copies is linear and symmetric, so the gradients go the same way: backward(S) = S. After the last layer only roots are
needed, so totals do not go down, and gradients do not go up.

Messages are at most :data:`~fastpart.train.methods.distgnn.wire.MESSAGE_BYTES` long. Buffers hold one message per
process for any number of vertices.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ....ranks import EXCHANGE, Clock
from ..wire import Lists, Wire, longest_of, swapped
from .copies import Copies

Put = Callable[[Tensor, Tensor], object]
"""Called with the ids of vertices and their received rows."""


class Totals(ABC):
    """The way in which the copies of vertices get the sums over all edges.

    Attributes
    ----------
    complete : bool
        Whether the totals always include everything.
    degree : torch.Tensor
        In-edges in the total of each copy in this epoch, int64.
    """

    complete = False
    degree: Tensor

    def total(self, x: Tensor, last: bool) -> Tensor:
        """Return the sums over all edges, in place of those over the edges here. In the last layer, only at roots."""
        total: Tensor = _Total.apply(x, self, last)
        return total

    @abstractmethod
    def mix(self, x: Tensor, way: str, up: bool, down: bool) -> None:
        """Add the rows of leaves to those of their roots, and copy those of roots to their leaves.

        ``way`` is what the rows are: ``"values"`` or ``"gradients"``.
        """

    @abstractmethod
    def largest(self, x: Tensor) -> Tensor:
        """Return the largest of each number over all copies, without a gradient."""


class ExactTotals(Totals):
    """Every copy gets the total in the same epoch."""

    complete = True

    def __init__(self, copies: Copies, wire: Wire, clock: Clock) -> None:
        self._up, self._down, self._wire, self._clock = copies.up, copies.down, wire, clock
        self._longest = longest_of(wire, copies.up)
        self.degree = copies.degree

    def mix(self, x: Tensor, way: str, up: bool, down: bool) -> None:
        """Exchange the rows of this epoch."""
        if up:
            self._move(x, self._up, self._down, lambda ids, rows: x.index_add_(0, ids, rows))
        if down:
            self._move(x, self._down, self._up, lambda ids, rows: x.index_copy_(0, ids, rows))

    def largest(self, x: Tensor) -> Tensor:
        """Return the largest over all copies."""
        largest = x.detach().clone()

        def put(ids: Tensor, rows: Tensor) -> None:
            ends = ids.view(-1, *[1] * (rows.dim() - 1)).expand_as(rows)
            largest.scatter_reduce_(0, ends, rows, "amax")

        self._move(largest, self._up, self._down, put)
        self.mix(largest, "values", up=False, down=True)
        return largest

    def _move(self, x: Tensor, out: Lists, into: Lists, put: Put) -> None:
        with self._clock.timed(EXCHANGE):
            for lists, rows in swapped(self._wire, x, out, into, self._longest):
                put(lists.ids, rows)


class LocalTotals(Totals):
    """Every copy keeps its own sums, without messages (0c)."""

    def __init__(self, copies: Copies) -> None:
        self.degree = copies.local_degree

    def total(self, x: Tensor, last: bool) -> Tensor:
        """Return the sums over the edges here."""
        return x

    def mix(self, x: Tensor, way: str, up: bool, down: bool) -> None:
        """Do nothing."""

    def largest(self, x: Tensor) -> Tensor:
        """Return the largest over the edges here."""
        return x.detach()


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, totals: Totals, last: bool) -> Tensor:
        ctx.totals, ctx.last = totals, last
        ctx.mark_dirty(x)
        totals.mix(x, "values", up=True, down=not last)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        mixed = gradient.clone(memory_format=torch.contiguous_format)
        ctx.totals.mix(mixed, "gradients", up=not ctx.last, down=True)
        return mixed, None, None
