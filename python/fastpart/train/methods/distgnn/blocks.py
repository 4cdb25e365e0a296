"""A part of the vertices in memory, the exchange of their rows, and the product with the rows of all parts.

Rows go to their readers, and gradients back to the owners. Both classes of rows give the same numbers. ``Whole``
broadcasts whole blocks, one at a time. Its messages are large and need no lists, and their size depends only on the
number of parts. ``Boundary`` sends each reader only the rows that it has edges from, so a good cut saves bytes.

The product is T_p = sum_q A[p, q] H_q. Its gradient is dH_q = sum_p A[p, q]^T G_p: every reader of a block sends its
summand to the owner. Copies are constants in this epoch, so nothing is sent back for blocks that were not broadcast. A
part's own block is always fresh.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....partitions.part_files import Ids, LocalIds
from ....partitions.parts import VertexPartData
from ...graphs.kernels import Kernel
from ...method_options import RowsSent
from ...ranks import AGGREGATION, EXCHANGE, Clock
from .exchange import Part, Tools
from .wire import Lists, Wire, like_rows, longest_of, swapped

Edges = tuple[Ids, Ids]
"""Where the in-edges of each inner vertex begin, and their sources."""


@dataclass
class Blocks(Part):
    """The rows A[p, :] of the matrix of the edges, for the part p of a vertex partition.

    Attributes
    ----------
    halo_parts, halo_rows : numpy.ndarray
        Part of each source in the halo, and its row there, int32. Sources from ``num_own`` on are the halo.
    """

    halo_parts: LocalIds = field(default_factory=lambda: np.empty(0, np.int32))
    halo_rows: LocalIds = field(default_factory=lambda: np.empty(0, np.int32))

    @staticmethod
    def links(stored: VertexPartData, new: LocalIds, parts: int, device: torch.device) -> dict[str, Any]:
        """Return the halo of one hop. One of two hops has no edges to inner vertices."""
        ring = stored.halo_sizes[0]
        return {"halo_parts": stored.halo_parts[:ring], "halo_rows": stored.halo_rows[:ring]}

    @property
    def facts(self) -> dict[str, int]:
        """Numbers of inner vertices, of sources in other parts, and of edges."""
        return {"vertices": self.num_own, "halo": len(self.halo_parts), "edges": len(self.indices)}

    def edges(self, index: int) -> dict[int, Edges]:
        """Return the blocks A[p, q] that are not empty, int64, by q, where p is ``index``. Sources are rows of q."""
        owner = np.concatenate([np.full(self.num_own, index), self.halo_parts])[self.indices]
        row = np.concatenate([np.arange(self.num_own), self.halo_rows])
        ends = np.repeat(np.arange(self.num_own), np.diff(self.indptr))
        blocks = {}
        for q in np.unique(owner):
            those = np.flatnonzero(owner == q)
            counts = np.bincount(ends[those], minlength=self.num_own)
            blocks[int(q)] = (np.concatenate(([0], np.cumsum(counts))), row[self.indices[those]])
        return blocks


Take = Callable[[int, Tensor], None]
"""Called with a block and its received rows."""

GradientsOf = Callable[[int], Tensor]
"""Returns the gradients of the received rows of a block."""


class Rows(ABC):
    """The base of the two kinds of exchange.

    Attributes
    ----------
    edges : dict
        By block: where the in-edges of each inner vertex begin, their sources among the received rows, and the number
        of these rows.
    readers : list of list of int
        By block: the processes with edges from it, ascending, without its owner.
    """

    def __init__(self, blocks: Blocks, wire: Wire, clock: Clock) -> None:
        self._rank, self._wire, self._clock = wire.rank, wire, clock
        self._device, edges = blocks.degree.device, blocks.edges(wire.rank)
        needed = {q: np.unique(rows) for q, (_, rows) in edges.items() if q != wire.rank}
        counts = torch.zeros(wire.size, wire.size, dtype=torch.int64)
        counts[wire.rank, wire.rank] = blocks.num_own
        for q, rows in needed.items():
            counts[wire.rank, q] = len(rows)
        counts = wire.total(counts.to(self._device)).cpu()
        self._sizes = counts.diagonal().tolist()
        counts.fill_diagonal_(0)
        self.readers = [counts[:, q].nonzero().flatten().tolist() for q in range(wire.size)]
        self.edges = {q: (*block, self._sizes[q]) for q, block in edges.items()}
        self._agree(needed, counts[:, wire.rank].tolist())

    @abstractmethod
    def _agree(self, needed: Mapping[int, Ids], asked: Sequence[int]) -> None:
        """Prepare the exchange, given the rows needed from each block, and the number of own rows per reader."""

    @abstractmethod
    def forth(self, x: Tensor, fresh: Sequence[bool], take: Take) -> None:
        """Send the own rows if they are fresh, and receive those needed from other fresh blocks."""

    @abstractmethod
    def back(self, total: Tensor, fresh: Sequence[bool], of: GradientsOf) -> None:
        """Send the gradients of received rows, and add the received gradients of the own rows to ``total``."""


class Whole(Rows):
    """All readers of a block receive all its rows."""

    def _agree(self, needed: Mapping[int, Ids], asked: Sequence[int]) -> None:
        self._wire.subgroups([[q, *readers] for q, readers in enumerate(self.readers) if readers])

    def forth(self, x: Tensor, fresh: Sequence[bool], take: Take) -> None:
        """Broadcast the blocks in order. A block that is not stored is freed before the next one is received."""
        for q, readers in self._mine(fresh):
            if q == self._rank:
                self._broadcast(x, q, readers)
            else:
                take(q, self._broadcast(like_rows(x, self._sizes[q]), q, readers))

    def back(self, total: Tensor, fresh: Sequence[bool], of: GradientsOf) -> None:
        """Sum the gradients of each block at its owner."""
        for q, readers in self._mine(fresh):
            self._reduce(total if q == self._rank else of(q), q, readers)

    def _broadcast(self, rows: Tensor, q: int, readers: Sequence[int]) -> Tensor:
        with self._clock.timed(EXCHANGE):
            self._wire.broadcast(rows, q, readers)
        return rows

    def _reduce(self, gradients: Tensor, q: int, readers: Sequence[int]) -> None:
        with self._clock.timed(EXCHANGE):
            self._wire.reduce(gradients, q, readers)

    def _mine(self, fresh: Sequence[bool]) -> Iterator[tuple[int, list[int]]]:
        """Yield the fresh blocks that this process sends or reads, and their readers."""
        for q, readers in enumerate(self.readers):
            if fresh[q] and readers and self._rank in (q, *readers):
                yield q, readers


class Boundary(Rows):
    """Each reader receives the rows that it has edges from."""

    def _agree(self, needed: Mapping[int, Ids], asked: Sequence[int]) -> None:
        none = np.empty(0, np.int64)
        ids = Lists([torch.from_numpy(needed.get(q, none)).to(self._device) for q in range(self._wire.size)])
        self._asked = Lists(self._wire.swap(ids.ids, ids.counts, asked).wait().split(list(asked)))
        self._counts = ids.counts
        self._longest = longest_of(self._wire, ids)
        for q, rows in needed.items():
            indptr, indices, _ = self.edges[q]
            self.edges[q] = (indptr, np.searchsorted(rows, indices), len(rows))

    def forth(self, x: Tensor, fresh: Sequence[bool], take: Take) -> None:
        """Send and receive the fresh rows, then process them."""
        asked, received = self._fresh(fresh)
        with self._clock.timed(EXCHANGE):
            swaps = swapped(self._wire, x, asked, received, self._longest)
            pieces = [rows.split(lists.counts) for lists, rows in swaps]
        for q, count in enumerate(received.counts):
            if count:
                take(q, torch.cat([piece[q] for piece in pieces]))

    def back(self, total: Tensor, fresh: Sequence[bool], of: GradientsOf) -> None:
        """Send the gradients back."""
        asked, received = self._fresh(fresh)
        gradients = torch.cat([total[:0], *(of(q) for q, count in enumerate(received.counts) if count)])
        with self._clock.timed(EXCHANGE):
            for lists, rows in swapped(self._wire, gradients, received, asked, self._longest):
                total.index_add_(0, lists.ids, rows)

    def _fresh(self, fresh: Sequence[bool]) -> tuple[Lists, Lists]:
        """Return the rows of the own block by reader, and the places of the rows of each block, if they are fresh."""
        counts = [count if now else 0 for count, now in zip(self._counts, fresh, strict=True)]
        places = torch.arange(sum(counts), device=self._asked.ids.device)
        asked = self._asked if fresh[self._rank] else self._asked.piece(0, 0)
        return asked, Lists(places.split(counts))


ROWS: dict[RowsSent, type[Rows]] = {"all": Whole, "boundary": Boundary}
"""By the value of ``rows=``."""


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
