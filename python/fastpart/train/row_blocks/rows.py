"""Exchange of rows: blocks go to their readers, and gradients back to the owners.

Both classes give the same numbers. ``Whole`` broadcasts whole blocks, one at a time. Its messages are large and need no
lists, and their size depends only on the number of parts. ``Boundary`` sends each reader only the rows that it has
edges from, so a good cut saves bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from ...part_files import Ids
from ..clock import EXCHANGE, Clock
from ..full_graph.wire import Wire, like_rows, rows_of_messages
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
        needed = {q: np.unique(indices) for q, (_, indices) in blocks.edges.items() if q != wire.rank}
        counts = torch.zeros(wire.size, wire.size, dtype=torch.int64)
        for q, rows in needed.items():
            counts[wire.rank, q] = len(rows)
        counts = wire.total(counts.to(blocks.degree.device)).cpu()
        self.readers = [counts[:, q].nonzero().flatten().tolist() for q in range(wire.size)]
        self.edges = {q: (*edges, blocks.sizes[q]) for q, edges in blocks.edges.items()}
        self._agree(blocks, needed, counts[:, wire.rank].tolist())

    @abstractmethod
    def _agree(self, blocks: Blocks, needed: Mapping[int, Ids], asked: Sequence[int]) -> None:
        """Prepare the exchange, given the rows needed from each block, and the number of own rows per reader."""

    @abstractmethod
    def forth(self, x: Tensor, fresh: Sequence[bool], take: Take) -> None:
        """Send the own rows if they are fresh, and receive those needed from other fresh blocks."""

    @abstractmethod
    def back(self, total: Tensor, fresh: Sequence[bool], of: GradientsOf) -> None:
        """Send the gradients of received rows, and add the received gradients of the own rows to ``total``."""


class Whole(Rows):
    """All readers of a block receive all its rows."""

    def _agree(self, blocks: Blocks, needed: Mapping[int, Ids], asked: Sequence[int]) -> None:
        self._sizes = blocks.sizes
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

    def _agree(self, blocks: Blocks, needed: Mapping[int, Ids], asked: Sequence[int]) -> None:
        device = blocks.degree.device
        ids = {q: torch.from_numpy(rows).to(device) for q, rows in needed.items()}
        self._asked = {
            p: torch.empty(count, dtype=torch.int64, device=device) for p, count in enumerate(asked) if count
        }
        self._wire.post(ids, self._asked).wait()
        self._counts = {q: len(rows) for q, rows in needed.items()}
        for q, rows in needed.items():
            indptr, indices = blocks.edges[q]
            self.edges[q] = (indptr, np.searchsorted(rows, indices), len(rows))

    def forth(self, x: Tensor, fresh: Sequence[bool], take: Take) -> None:
        """Send and receive the fresh rows, then process them."""
        asked = self._asked if fresh[self._rank] else {}
        rows = {q: like_rows(x, count) for q, count in self._counts.items() if fresh[q]}
        with self._clock.timed(EXCHANGE):
            for start, stop in _pieces(x, [*asked.values(), *rows.values()]):
                out = {p: x[ids[start:stop]] for p, ids in asked.items() if start < len(ids)}
                into = {q: room[start:stop] for q, room in rows.items() if start < len(room)}
                self._wire.post(out, into).wait()
        for q, room in rows.items():
            take(q, room)

    def back(self, total: Tensor, fresh: Sequence[bool], of: GradientsOf) -> None:
        """Send the gradients back."""
        asked = self._asked if fresh[self._rank] else {}
        gradients = {q: of(q) for q in self._counts if fresh[q]}
        with self._clock.timed(EXCHANGE):
            for start, stop in _pieces(total, [*asked.values(), *gradients.values()]):
                ids = {p: rows[start:stop] for p, rows in asked.items() if start < len(rows)}
                into = {p: like_rows(total, len(rows)) for p, rows in ids.items()}
                out = {q: rows[start:stop] for q, rows in gradients.items() if start < len(rows)}
                self._wire.post(out, into).wait()
                for p, rows in ids.items():
                    total.index_add_(0, rows, into[p])


def _pieces(x: Tensor, lists: Sequence[Tensor]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of messages with rows like those of ``x``, for the longest list."""
    step = rows_of_messages(x)
    for start in range(0, max(map(len, lists), default=0), step):
        yield start, start + step


RowsSent = Literal["all", "boundary"]
ROWS: dict[RowsSent, type[Rows]] = {"all": Whole, "boundary": Boundary}
"""By the value of ``rows=``."""
