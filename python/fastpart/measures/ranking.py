"""The rows that batches are expected to need most often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.cache_size import CacheSize
from ..core.options import RunOptions
from ..partitions.seeds import owner_of

RowIds = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Epoch:
    """The seeds and the sampling of an epoch.

    Attributes
    ----------
    seeds : numpy.ndarray
        uint32: rows of all seeds.
    fanouts : sequence of int, or of sequences of int
        In-edges per vertex in each hop. Of a typed graph so many of each relation, hop by hop.
    batch_size : int
        Seeds of a step.
    types : _core.Types or None
        The types of the rows. None: the graph has none.
    """

    seeds: RowIds
    fanouts: Sequence[int] | Sequence[Sequence[int]]
    batch_size: int
    types: _core.Types | None = None

    def expected_steps(
        self, topology: _core.Topology, own: npt.NDArray[np.bool_], options: RunOptions | None = None
    ) -> npt.NDArray[np.float32]:
        """Return for each row the expected number of steps whose batch has it, if a rank has some of the parts."""
        mine = self.seeds[own[owner_of(self.seeds, topology.starts)]]
        sizes: dict[str, Any] = {"num_seeds": len(self.seeds), "batch_size": self.batch_size}
        return topology.accesses(mine, self.fanouts, **sizes, types=self.types, options=options)


def most_needed_of_others(
    topology: _core.Topology,
    part: int,
    cache: CacheSize | None,
    scores: npt.NDArray[np.float32],
    row_bytes: npt.NDArray[np.float32] | float,
) -> RowIds:
    """Return the rows of other parts with the highest scores above 0 that a cache holds. None: all.

    ``row_bytes`` are the bytes of all rows, or of each. Then they are those of the highest scores times bytes. Rows of
    no bytes are left out, and do not count for a share.
    """
    first, end = topology.starts[part : part + 2].tolist()
    own = end - first
    if isinstance(row_bytes, np.ndarray):
        scores, own = scores * row_bytes, np.count_nonzero(row_bytes[first:end])
    found = np.flatnonzero(scores > 0)
    found = found[(found < first) | (found >= end)]
    ranked = by_score(found, scores)
    if cache is not None:
        bytes_of = row_bytes[ranked] if isinstance(row_bytes, np.ndarray) else row_bytes
        ranked = ranked[: cache.held(int(own), bytes_of)]
    return np.sort(ranked).astype(np.uint32)


def rows_by_type(types: _core.Types | None, rows: RowIds) -> list[RowIds]:
    """Return rows of the topology as rows of each type. Those that ascend do so in each type."""
    if types is None:
        return [rows]
    numbers, of_type = types.locate(rows)
    return [of_type[numbers == number] for number in range(len(types.starts))]


def largest(rows: npt.NDArray[Any], score: npt.NDArray[np.float32], count: int) -> RowIds:
    """Return so many of the rows with the highest scores. They ascend."""
    return np.sort(by_score(rows, score)[:count]).astype(np.uint32)


def by_score(rows: npt.NDArray[Any], score: npt.NDArray[np.float32]) -> npt.NDArray[Any]:
    """Return rows by their scores, the highest first. Equal ones follow each other by number, the same everywhere."""
    return rows[np.lexsort((rows, -score[rows]))]
