"""The rows that a worker computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..config import Options
from ..data import Dataset
from ..full_graph.part import Tools, WorkerPart
from ..scores import Task
from .blocks import Blocks, load
from .graph import RowBlocks
from .product import Matrix
from .rows import ROWS
from .staleness import Epoch, Staleness, bound


@dataclass
class RowWorkerPart(WorkerPart):
    """The rows of the vertices of a part, which one worker computes."""

    epoch: Epoch = field(default_factory=Epoch)

    def begin(self, epoch: int) -> None:
        """Begin an epoch, and reset the counts."""
        self.epoch.begin(epoch)

    def row(self) -> dict[str, Any]:
        """Return the numbers of blocks that were broadcast and that were skipped."""
        return {"broadcasts": self.epoch.broadcasts, "skipped": self.epoch.skipped}


def load_part(dataset: Dataset, options: Options, how: dict[str, Any], tools: Tools) -> RowWorkerPart:
    """Return the part of this worker. ``how`` holds ``rows`` and at most one bound by its name."""
    blocks = load(dataset, tools.wire.rank, tools.device)
    return part_of(blocks, dataset.task, dataset.num_train, options, how, tools)


def part_of(
    blocks: Blocks, task: Task, num_train: int, options: Options, how: dict[str, Any], tools: Tools
) -> RowWorkerPart:
    """Return the part of a worker that has some blocks."""
    wire, layers = tools.wire, options.layers
    rows = ROWS[how["rows"]](blocks, wire, tools.clock)
    matrix = Matrix(wire.rank, rows, tools)
    epoch, limit = Epoch(), bound(how, wire)
    read = [bool(readers) for readers in rows.readers]
    # Features never change, so their sums are computed once, from all blocks.
    first = RowBlocks(blocks, matrix, remembers=True)
    trained = [RowBlocks(blocks, matrix, Staleness(limit, epoch, read, wire.rank)) for _ in range(1, layers)]
    exact = [RowBlocks(blocks, matrix)] * (layers - 1)
    facts = {"vertices": len(blocks.vertices), "halo": blocks.halo, "edges": blocks.num_edges}
    return RowWorkerPart(
        task,
        blocks.features,
        blocks.labels,
        blocks.splits,
        num_train,
        [first, *trained],
        [first, *exact],
        tools,
        facts,
        epoch,
    )
