"""The product of the rows of the matrix of the edges with the rows of all parts: T_p = sum_q A[p, q] H_q.

Its gradient is dH_q = sum_p A[p, q]^T G_p: every reader of a block sends its summand to the owner. Copies are constants
in this epoch, so nothing is sent back for blocks that were not broadcast. A part's own block is always fresh.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from ....graphs.kernels import Kernel
from ....ranks import AGGREGATION
from ..part import Tools
from .rows import Rows


class Matrix:
    """The blocks A[p, q] of a process p, and how it gets H_q.

    Parameters
    ----------
    rows : Rows
        The messages.
    tools : Tools
        The tools of this process.
    """

    def __init__(self, rows: Rows, tools: Tools) -> None:
        self.rows = rows
        self._clock = tools.clock
        kernels = {q: Kernel(*edges, tools.device) for q, edges in sorted(rows.edges.items())}
        self._own = kernels.pop(tools.wire.rank, None)
        self._others = kernels

    def times(self, x: Tensor, fresh: Sequence[bool], copies: dict[int, Tensor] | None) -> Tensor:
        """Return the product.

        Parameters
        ----------
        x : torch.Tensor
            The rows of this process.
        fresh : sequence of bool
            Which blocks are broadcast. It is equal in all processes.
        copies : dict of torch.Tensor or None
            Copies of the other blocks. Blocks that are broadcast are stored here, too.
        """
        total: Tensor = _Product.apply(x, self, fresh, copies)
        return total

    def forth(self, x: Tensor, fresh: Sequence[bool], copies: dict[int, Tensor] | None) -> Tensor:
        """Return T_p. Without ``copies``, one block is in memory at a time."""
        total = self._timed(self._own.sum, x) if self._own else torch.zeros_like(x)

        def take(q: int, rows: Tensor) -> None:
            total.add_(self._timed(self._others[q].sum, rows))
            if copies is not None:
                copies[q] = rows

        self.rows.forth(x, fresh, take)
        for q, kernel in self._others.items():
            if not fresh[q]:
                assert copies is not None
                total.add_(self._timed(kernel.sum, copies[q]))
        return total

    def back(self, gradient: Tensor, fresh: Sequence[bool]) -> Tensor:
        """Return dH_p."""
        total = self._timed(self._own.back, gradient) if self._own else torch.zeros_like(gradient)
        self.rows.back(total, fresh, lambda q: self._timed(self._others[q].back, gradient))
        return total

    def _timed(self, way: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        with self._clock.timed(AGGREGATION):
            return way(x)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, matrix: Matrix, fresh: Sequence[bool], copies: dict[int, Tensor] | None
    ) -> Tensor:
        ctx.matrix, ctx.fresh = matrix, fresh
        return matrix.forth(x.detach().contiguous(), fresh, copies)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None, None]:
        return ctx.matrix.back(gradient.contiguous(), ctx.fresh), None, None, None
