"""The share of a worker over row blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..config import Options
from ..data import Dataset
from ..full_graph.share import Share, Tools
from ..scores import Task
from .blocks import Blocks, load
from .graph import RowBlocks
from .product import Matrix
from .rows import ROWS
from .staleness import Epoch, Staleness, bound


@dataclass
class RowShare(Share):
    """The rows of a part."""

    epoch: Epoch = field(default_factory=Epoch)

    def begin(self, epoch: int) -> None:
        """Begin an epoch, and reset the counts."""
        self.epoch.begin(epoch)

    def row(self) -> dict[str, Any]:
        """Return the numbers of blocks that were broadcast and that were skipped."""
        return {"broadcasts": self.epoch.broadcasts, "skipped": self.epoch.skipped}


def share(dataset: Dataset, options: Options, how: dict[str, Any], tools: Tools) -> RowShare:
    """Return the share of this process. ``how`` holds ``rows`` and at most one bound by its name."""
    blocks = load(dataset, tools.wire.rank, tools.device)
    return share_of(blocks, dataset.task, dataset.num_train, options, how, tools)


def share_of(
    blocks: Blocks, task: Task, num_train: int, options: Options, how: dict[str, Any], tools: Tools
) -> RowShare:
    """Return the share of some blocks."""
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
    return RowShare(
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
