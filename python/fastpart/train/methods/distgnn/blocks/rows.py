"""Exchange of rows: blocks go to their readers, and gradients back to the owners.

Both classes give the same numbers. ``Whole`` broadcasts whole blocks, one at a time. Its messages are large and need no
lists, and their size depends only on the number of parts. ``Boundary`` sends each reader only the rows that it has
edges from, so a good cut saves bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from .....partitions.part_files import Ids
from ....method_options import RowsSent
from ....ranks import EXCHANGE, Clock
from ..wire import Lists, Wire, like_rows, longest_of, swapped
from .blocks import Blocks

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
