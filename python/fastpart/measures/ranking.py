"""The rows that batches are expected to need most often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
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
    fanouts : sequence of int
        In-edges per vertex in each hop.
    batch_size : int
        Seeds of a step.
    """

    seeds: RowIds
    fanouts: Sequence[int]
    batch_size: int

    def expected_steps(
        self, topology: _core.Topology, own: npt.NDArray[np.bool_], options: RunOptions | None = None
    ) -> npt.NDArray[np.float32]:
        """Return for each row the expected number of steps whose batch has it, if a rank has some of the parts."""
        mine = self.seeds[own[owner_of(self.seeds, topology.starts)]]
        return topology.accesses(
            mine, self.fanouts, num_seeds=len(self.seeds), batch_size=self.batch_size, options=options
        )


def most_needed_of_others(
    topology: _core.Topology, part: int, share: float | None, scores: npt.NDArray[np.float32]
) -> RowIds:
    """Return the rows of other parts with the highest scores above 0, as many as a share of the part. None: all."""
    first, end = topology.starts[part : part + 2].tolist()
    found = np.flatnonzero(scores > 0)
    found = found[(found < first) | (found >= end)]
    count = len(found) if share is None else min(int(share * (end - first)), len(found))
    return largest(found, scores, count)


def largest(rows: npt.NDArray[Any], score: npt.NDArray[np.float32], count: int) -> RowIds:
    """Return so many of the rows with the highest scores. They ascend."""
    # Equal rows are told apart by their number, so that the choice is the same everywhere.
    order = np.lexsort((rows, -score[rows]))[:count]
    return np.sort(rows[order]).astype(np.uint32)
