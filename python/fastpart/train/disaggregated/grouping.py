"""Batches for all compute workers of a machine as one message, with each row of features once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .cache import CacheIndex, RowIds
from .graphs import Sample
from .messages import Array, Kind, framed

SENT, ROWS, SLOTS, KEPT, INTO = range(5)
"""Arrays of a group: features that are sent, all rows (these first), and what is read from the cache and kept there."""

PLACES, INDPTR, INDICES = range(3)
"""Arrays of each batch behind them: row of each node in the group, and its in-edges, before their features if any."""


@dataclass(frozen=True)
class Group:
    """A group of batches, before the features are read.

    Attributes
    ----------
    sent : numpy.ndarray
        Rows to send, which ascend.
    content, arrays
        The message without the features.
    """

    sent: RowIds
    content: dict[str, Any]
    arrays: list[Array]


class Grouping:
    """Makes groups. It has a number and a mark for every row of the topology."""

    def __init__(self, num_rows: int, row_bytes: int, index: CacheIndex) -> None:
        self._place = np.empty(num_rows, np.int32)
        self._marked = np.zeros(num_rows, np.bool_)
        self._row_bytes, self._cache_index = row_bytes, index

    def group(self, samples: Sequence[Sample], compute_workers: Sequence[int]) -> Group:
        """Return the group of some batches, given the compute worker of each."""
        rows = self._distinct(samples)
        placement = self._cache_index.place(rows)
        sent, cached = rows[~placement.cached], rows[placement.cached]
        ordered = np.concatenate([sent, cached])
        self._place[ordered] = np.arange(len(ordered))
        arrays: list[Array] = [ordered, placement.slots, placement.kept, placement.into]
        ungrouped, each_sent = 0, np.zeros(len(ordered), np.bool_)
        for sample in samples:
            batch: list[Array] = [self._place[sample.rows], sample.indptr, sample.indices]
            if sample.edge_features is not None:
                batch.append(sample.edge_features)
            each_sent[:] = False
            each_sent[batch[PLACES]] = True
            ungrouped += self._alone(each_sent, len(sent), sample, batch)
            arrays += batch
        graphs = [
            [worker, each.levels, each.edges] for worker, each in zip(compute_workers, samples, strict=True)
        ]
        return Group(sent, {"kind": Kind.BATCH, "graphs": graphs, "ungrouped": ungrouped}, arrays)

    def _distinct(self, samples: Sequence[Sample]) -> RowIds:
        """Return the distinct rows of all batches. They ascend."""
        for sample in samples:
            self._marked[sample.rows] = True
        rows = np.flatnonzero(self._marked).astype(np.uint32)
        self._marked[rows] = False
        return rows

    def _alone(
        self, its_rows: npt.NDArray[np.bool_], sent: int, sample: Sample, batch: Sequence[Array]
    ) -> int:
        """Return the bytes of a message of one batch alone, with each of its rows once, and the same cache."""
        rows, missing = int(np.count_nonzero(its_rows)), int(np.count_nonzero(its_rows[:sent]))
        head = framed({"kind": Kind.BATCH, "graphs": [[0, sample.levels, sample.edges]]}, [])
        others = 4 * rows + 4 * (rows - missing)  # rows and slots
        return len(head) + missing * self._row_bytes + others + sum(array.nbytes for array in batch)
