"""The exchange of SANCUS: blocks of rows, broadcast unless the copies of the others are good enough."""

from __future__ import annotations

from typing import Any

from .....errors import arg
from ....data import Dataset
from ....memory import MORE_PARTS, Need, widths
from ....method_options import SancusOptions
from ..exchange import Exchange
from ..part import Tools
from . import staleness
from .blocks import Blocks
from .layer import RowBlocks
from .product import Matrix
from .rows import ROWS
from .staleness import Bound, Epoch, Staleness


class BlocksExchange(Exchange):
    """The blocks of a part of the vertices."""

    dataset, part, held = Dataset, Blocks, "the rows of a part"
    decisive = ("rows", *staleness.BOUNDS)

    def __init__(self, part: Blocks, options: SancusOptions, tools: Tools) -> None:
        rows = ROWS[options.rows](part, tools.wire, tools.clock)
        matrix, limit, self._epoch = Matrix(rows, tools), staleness.bound(options, tools.wire), Epoch()
        later = range(1, options.layers)

        def layer(bound: Bound | None, epoch: Epoch, remembers: bool = False) -> RowBlocks:
            decides = Staleness(bound, epoch, rows.readers, tools.wire.rank)
            return RowBlocks(part, matrix, decides, remembers)

        # Features never change, so their sums are computed once, from all blocks.
        first, exact = layer(None, Epoch(), remembers=True), layer(None, Epoch())
        self.layers = [first, *(layer(limit, self._epoch) for _ in later)]
        self.exact = [first, *(exact for _ in later)]

    @staticmethod
    def summary(options: SancusOptions, dataset: Dataset) -> dict[str, Any]:
        """Return the number of parts, and the share of their halo."""
        measured = dataset.manifest.get("summary", {})
        return {"parts": dataset.partition.k, "halo_rf": measured.get("halo_rf")}

    @staticmethod
    def needs(dataset: Dataset, options: SancusOptions, rows: int) -> list[Need]:
        """Return the needs of the rows of others, and of their copies if there is a bound."""
        received, copied = rows, len(dataset.partition)
        if options.rows == "boundary":
            received = copied = max(part.halo_sizes[0] for part in dataset.partition.parts)
        hidden = [width for width, _ in widths(options, dataset.task)][1:]
        bounded = any(getattr(options, name) is not None for name in staleness.BOUNDS)
        return [
            Need("rows of another part", 12 * received * max([dataset.task.features, *hidden]), MORE_PARTS),
            Need(
                "copies of rows",
                4 * copied * sum(hidden) * bounded,
                f"{arg('rows', 'boundary')}, or no bound",
            ),
        ]

    def begin(self, epoch: int) -> None:
        """Begin an epoch, and reset the counts."""
        self._epoch.begin(epoch)

    def row(self) -> dict[str, Any]:
        """Return the numbers of blocks that were broadcast and that were skipped."""
        return {"broadcasts": self._epoch.broadcasts, "skipped": self._epoch.skipped}

    def close(self) -> None:
        """Do nothing: every message is received in its step."""
