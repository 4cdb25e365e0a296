"""Rows of other ranks, by messages. Learned rows of vertices come the same way, and their gradients go back."""

from __future__ import annotations

import math
import threading
from contextlib import suppress
from datetime import timedelta
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist

from ...errors import TrainingError
from .sources import Array, Counts, RowIds, RowSource

Sizes = npt.NDArray[np.int64]

_LEFT = -1
"""Instead of the number of rows that a rank wants: it has ended its epoch."""

_PATIENCE = 2.0
"""Seconds that :meth:`Exchange.close` waits for rounds. They may wait for a process that is gone."""


class Exchange:
    """Messages between all ranks, in a process group of their own. It uses gloo: rows come from files, not from GPUs.

    All ranks make as many rounds. In each, a rank asks the others for rows, of which there may be none, and answers
    them. It may leave before the last round. That ends the rounds of all ranks. A single rank needs no process group.

    Parameters
    ----------
    bounds : numpy.ndarray
        int64: first row of each rank, and the number of rows.
    seconds : float
        Longest time to wait for another rank.
    """

    def __init__(self, bounds: Sizes, seconds: float) -> None:
        self._bounds, self._size, self._rank, self._group = bounds, len(bounds) - 1, 0, None
        if self._size > 1:
            self._group = dist.new_group(backend="gloo", timeout=timedelta(seconds=seconds))
            self._rank = dist.get_rank()
        self._left = self._bytes = 0
        self._idle = threading.Event()
        self._idle.set()
        self._last: tuple[RowIds, Sizes, Sizes]

    def begin(self, rounds: int) -> None:
        """Begin so many rounds, which :meth:`leave` ends.

        Rounds before them may go on in their thread until a slower rank answers. Two threads in one process group would
        take each other's messages, so they are waited for. The longest time to wait for a rank bounds that, too.
        """
        self._idle.wait()
        self._idle.clear()
        self._left = rounds

    def fetch(self, rows: RowIds, own: RowSource) -> Array:
        """Make a round. Return rows, which ascend, and answer the other ranks from ``own``."""
        wanted = np.diff(np.searchsorted(rows, self._bounds))
        asked = self._counts(wanted)
        requests = self._sent(rows, wanted, asked)
        self._last = requests, asked, wanted
        answers = self._sent(own.rows(requests), asked, wanted)
        self._count(rows, wanted)
        self._count(answers, wanted)
        return answers

    def send_back(self, values: Array) -> tuple[RowIds, Sizes, Array]:
        """Send a value of each row that the last round fetched to its owner.

        Returns
        -------
        tuple
            The rows of this rank that were fetched in that round, those for rank 0 first, where the rows for each rank
            start (and the number of rows), and what came for them. A row occurs once for each rank that fetched it.
        """
        requests, asked, wanted = self._last
        self._count(values, wanted)
        return requests, np.concatenate(([0], np.cumsum(asked))), self._sent(values, wanted, asked)

    def read_bytes(self) -> int:
        """Return the bytes between this rank and others for the rows that it fetched since the last call."""
        count, self._bytes = self._bytes, 0
        return count

    def leave(self) -> None:
        """End the rounds. If some are left, tell the other ranks that there are no more. They do not wait for it."""
        try:
            if self._left:
                with suppress(RuntimeError):  # they may be gone
                    self._counts(np.full(self._size, _LEFT))
        finally:
            self._idle.set()

    def close(self) -> None:
        """Leave the process group, unless rounds still wait in it."""
        if self._group is not None and self._idle.wait(_PATIENCE):
            dist.destroy_process_group(self._group)

    def _counts(self, wanted: Sizes) -> Sizes:
        """Tell every rank how many of its rows are wanted here, and return what they want."""
        rounds, self._left = self._left, 0  # after an error there is no other round
        each = np.ones(self._size, np.int64)
        asked = self._sent(wanted, each, each)
        self._count(wanted, each)
        if (gone := np.flatnonzero(asked == _LEFT)).size:
            raise TrainingError(
                f"rank {gone[0]} has ended its epoch early. All ranks have to take all batches"
            )
        self._left = max(rounds - 1, 0)
        return asked

    def _sent(self, x: Array, out: Sizes, into: Sizes) -> Array:
        """Send pieces of ``x`` to all ranks, and return theirs."""
        if self._group is None:
            return x
        width = math.prod(x.shape[1:]) * x.itemsize
        pieces = torch.from_numpy(x.reshape(-1).view(np.uint8).reshape(len(x), width))
        received = torch.empty((int(into.sum()), width), dtype=torch.uint8)
        dist.all_to_all_single(received, pieces, into.tolist(), out.tolist(), group=self._group)
        return received.numpy().reshape(-1).view(x.dtype).reshape(len(received), *x.shape[1:])

    def _count(self, x: Array, pieces: Sizes) -> None:
        """Count the bytes of pieces, but for that of this rank itself."""
        others = len(x) - int(pieces[self._rank])
        self._bytes += others * math.prod(x.shape[1:]) * x.itemsize


class Owners:
    """Rows of the ranks that own them. All ranks ask at the same time, also for no rows.

    Parameters
    ----------
    exchange : Exchange
        Messages to the other ranks.
    own : RowSource
        The rows of this rank, for the answers.
    counts : Counts
        Where the bytes of the messages are counted.
    """

    def __init__(self, exchange: Exchange, own: RowSource, counts: Counts) -> None:
        self._exchange, self._own, self._counts = exchange, own, counts
        self.dtype, self.row_shape = own.dtype, own.row_shape

    def rows(self, ids: RowIds) -> Array:
        """Return the rows, which ascend."""
        x = self._exchange.fetch(ids, self._own)
        self._counts.add("remote_bytes", self._exchange.read_bytes())
        return x

    def send_back(self, values: Array) -> tuple[RowIds, Sizes, Array]:
        """Send a value of each of the last rows to its owner, and return what came here. See :class:`Exchange`."""
        received = self._exchange.send_back(values)
        self._counts.add("remote_bytes", self._exchange.read_bytes())
        return received


class Table(RowSource, Protocol):
    """The learned rows of the parts of a rank."""

    def step(self, ids: RowIds, bounds: npt.NDArray[np.int64], gradients: Array) -> None:
        """Change rows by their gradients.

        Parameters
        ----------
        ids : numpy.ndarray
            The rows that each rank used, ascending, those of rank 0 first.
        bounds : numpy.ndarray
            int64: where the rows of each rank start, and the end of the last ones.
        gradients : numpy.ndarray
            A gradient for each of ``ids``. The gradients of a row in several lists are added up in their order.
        """


class Embeddings:
    """The learned rows of all ranks. In every step all ranks call :meth:`rows` and then :meth:`update`.

    Parameters
    ----------
    own : Table
        The rows of this rank.
    exchange : Exchange
        Messages to the other ranks.
    counts : Counts
        Where the bytes of rows and gradients are counted.
    """

    def __init__(self, own: Table, exchange: Exchange, counts: Counts) -> None:
        self._own, self._owners = own, Owners(exchange, own, counts)
        self.dtype, self.row_shape = own.dtype, own.row_shape

    def rows(self, ids: RowIds) -> Array:
        """Return the rows, which ascend."""
        return self._owners.rows(ids)

    def update(self, gradient: Array) -> None:
        """Let the owners of the last rows change them, given the gradient of each."""
        self._own.step(*self._owners.send_back(gradient))
