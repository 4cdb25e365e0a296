"""How the rows of the blocks come to those that read them, and gradients back to the owners.

Both ways give the same numbers. ``Whole`` broadcasts blocks as they are, one at a time, so that what is sent depends on
the number of parts alone: large messages and no lists. ``Boundary`` sends each reader the rows that its edges come
from, so that a good cut pays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from ...parts import Ids
from ..full_graph.clock import EXCHANGE, Clock
from ..full_graph.wire import Wire, like_rows, rows_of_messages
from .blocks import Blocks

Take = Callable[[int, Tensor], None]
"""Takes the rows of a block that are read here."""

GradientsOf = Callable[[int], Tensor]
"""Makes the gradients of the rows of a block that are read here."""


class Rows(ABC):
    """What is sent.

    Attributes
    ----------
    edges : dict
        By block: where the in-edges of each inner vertex begin, their sources among the rows that come, and how many
        rows these are.
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
        """Get ready, given the rows of the others that are read here, and how many of the own ones the others read."""

    @abstractmethod
    def forth(self, x: Tensor, fresh: Sequence[bool], take: Take) -> None:
        """Send the own rows if they are fresh, and take those of the fresh blocks that are read here."""

    @abstractmethod
    def back(self, total: Tensor, fresh: Sequence[bool], of: GradientsOf) -> None:
        """Send the gradients of the fresh blocks that are read here, and add those of the own rows to ``total``."""


class Whole(Rows):
    """All rows of a block to all of its readers at once."""

    def _agree(self, blocks: Blocks, needed: Mapping[int, Ids], asked: Sequence[int]) -> None:
        self._sizes = blocks.sizes
        self._wire.subgroups([[q, *readers] for q, readers in enumerate(self.readers) if readers])

    def forth(self, x: Tensor, fresh: Sequence[bool], take: Take) -> None:
        """Broadcast block after block; unless it is kept, each is gone before the next one comes."""
        for q, readers in self._mine(fresh):
            if q == self._rank:
                self._broadcast(x, q, readers)
            else:
                take(q, self._broadcast(like_rows(x, self._sizes[q]), q, readers))

    def back(self, total: Tensor, fresh: Sequence[bool], of: GradientsOf) -> None:
        """Add up the gradients of block after block at its owner."""
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
        """Return the fresh blocks that this process sends or reads, and who else reads them."""
        for q, readers in enumerate(self.readers):
            if fresh[q] and readers and self._rank in (q, *readers):
                yield q, readers


class Boundary(Rows):
    """To each reader the rows that it has edges from."""

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
        """Send and receive what is fresh, then take it."""
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
        """Send the gradients the same way back."""
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
    """Return where messages about rows like those of ``x`` begin and end, for the longest of some lists."""
    step = rows_of_messages(x)
    for start in range(0, max(map(len, lists), default=0), step):
        yield start, start + step


ROWS: dict[str, type[Rows]] = {"all": Whole, "boundary": Boundary}
"""By the name that ``rows=`` takes."""
