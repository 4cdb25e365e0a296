"""Rows of features of other ranks, by messages."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import timedelta

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor

from ...errors import TrainingError
from .source import Array, RowIds, RowSource

_LEFT = -1
"""Instead of the number of rows that a rank wants: it has ended its epoch."""


class Exchange:
    """Messages between all ranks, in a process group of their own. It uses gloo: rows come from files, not from GPUs.

    All ranks make as many rounds. In each, a rank asks the others for rows, of which there may be none, and answers
    them. It may leave before the last round. That ends the rounds of all ranks.

    Parameters
    ----------
    bounds : numpy.ndarray
        int64: first row of each rank, and the number of rows.
    seconds : float
        Longest time to wait for another rank.
    """

    def __init__(self, bounds: npt.NDArray[np.int64], seconds: float) -> None:
        self._group = dist.new_group(backend="gloo", timeout=timedelta(seconds=seconds))
        self._bounds, self._size = bounds, dist.get_world_size()
        self._left = self._bytes = 0

    def begin(self, rounds: int) -> None:
        """Begin so many rounds."""
        self._left = rounds

    def fetch(self, rows: RowIds, own: RowSource) -> Array:
        """Make a round. Return rows of other ranks, which ascend, and answer theirs from ``own``."""
        wanted = np.diff(np.searchsorted(rows, self._bounds))
        asked = self._counts(wanted)
        requests = self._sent(torch.from_numpy(rows.view(np.int32)), wanted, asked)
        features = own.rows(requests.numpy().view(np.uint32))
        width = math.prod(features.shape[1:]) * features.itemsize
        answers = torch.from_numpy(features.reshape(-1).view(np.uint8).reshape(len(requests), width))
        answers = self._sent(answers, asked, wanted)
        self._bytes += rows.nbytes + answers.numel()
        return answers.numpy().reshape(-1).view(features.dtype).reshape(len(rows), *features.shape[1:])

    def read_bytes(self) -> int:
        """Return the bytes of the requests of this rank and of the answers to it since the last call."""
        count, self._bytes = self._bytes, 0
        return count

    def leave(self) -> None:
        """Tell the other ranks that this one makes no more rounds. They do not wait for it."""
        if self._left:
            with suppress(RuntimeError):  # they may be gone
                self._counts(np.full(self._size, _LEFT))

    def close(self) -> None:
        """Leave the process group."""
        dist.destroy_process_group(self._group)

    def _counts(self, wanted: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Tell every rank how many of its rows are wanted here, and return what they want."""
        rounds, self._left = self._left, 0  # after an error there is no other round
        asked = self._sent(torch.from_numpy(wanted), None, None).numpy()
        self._bytes += wanted.nbytes * (self._size - 1) // self._size
        if (gone := np.flatnonzero(asked == _LEFT)).size:
            raise TrainingError(
                f"rank {gone[0]} has ended its epoch early. All ranks have to take all batches"
            )
        self._left = max(rounds - 1, 0)
        return asked

    def _sent(self, x: Tensor, out: Array | None, into: Array | None) -> Tensor:
        """Send pieces of ``x`` to all ranks, and return theirs. Without sizes, the pieces are equal."""
        received = torch.empty((len(x) if into is None else int(into.sum()), *x.shape[1:]), dtype=x.dtype)
        sizes = (None, None) if out is None or into is None else (into.tolist(), out.tolist())
        dist.all_to_all_single(received, x, *sizes, group=self._group)
        return received


class Owners:
    """Rows of the ranks that own them. All ranks ask at the same time, also for no rows.

    Parameters
    ----------
    exchange : Exchange
        Messages to the other ranks.
    own : RowSource
        The rows of this rank, for the answers.
    """

    def __init__(self, exchange: Exchange, own: RowSource) -> None:
        self._exchange, self._own = exchange, own
        self.dtype, self.row_shape = own.dtype, own.row_shape

    def rows(self, ids: RowIds) -> Array:
        """Return the rows, which ascend."""
        return self._exchange.fetch(ids, self._own)
