"""The exchange of DistGNN: totals at all copies of a vertex, at once, late or never."""

from __future__ import annotations

from typing import Any

import torch

from ....data import EdgeDataset
from ....memory import Need, widths
from ....method_options import DistGNNOptions
from ....options import mixed
from ..exchange import Exchange
from ..part import Tools
from .copies import Copies
from .delayed import DelayedTotals
from .layer import EdgeLayer, Edges
from .totals import ExactTotals, LocalTotals, Totals


class TotalsExchange(Exchange):
    """The totals of a part of the edges. After a resume there are no pending messages, so a delay begins anew."""

    dataset, part, held = EdgeDataset, Copies, "a part of the edges"
    decisive = ("delay", "exchange")

    def __init__(self, part: Copies, options: DistGNNOptions, tools: Tools) -> None:
        self._seed, self._rank = options.seed, tools.wire.rank
        self._random = torch.Generator(tools.device)
        self._late: list[DelayedTotals] = []
        edges, layers, never = Edges(part, tools), options.layers, options.exchange == "never"

        def layer(index: int, totals: Totals, remembers: bool) -> EdgeLayer:
            return EdgeLayer(edges, totals, self._random, last=index == layers - 1, remembers=remembers)

        # Features never change, so their sums are exchanged once, without a delay. Without communication they are not
        # exchanged, and the scores, which are always exact, do not keep a second copy of the sums.
        at_once, here = ExactTotals(part, tools.wire, tools.clock), LocalTotals(part)
        self.layers = self.exact = [layer(at, at_once, at == 0 and not never) for at in range(layers)]
        if never:
            self.layers = [layer(at, here, at == 0) for at in range(layers)]
        elif options.delay:
            self._late = [
                DelayedTotals(part, options.delay, tools.wire, tools.clock) for _ in range(1, layers)
            ]
            later = [layer(at, totals, False) for at, totals in enumerate(self._late, 1)]
            self.layers = [self.exact[0], *later]

    @staticmethod
    def summary(options: DistGNNOptions, dataset: EdgeDataset) -> dict[str, Any]:
        """Return the parameters, the number of parts, and the copies of a vertex."""
        measured = dataset.manifest.get("summary", {})
        return {
            "delay": options.delay,
            "exchange": options.exchange,
            "parts": dataset.partition.k,
            "replication_factor": measured.get("rf"),
        }

    @staticmethod
    def needs(dataset: EdgeDataset, options: DistGNNOptions, rows: int) -> list[Need]:
        """Return the need of messages under way."""
        late = sum(out for _, out in widths(options, dataset.task)) * 4 * 8 * rows if options.delay else 0
        return [Need("messages under way", late, "delay=0")]

    def begin(self, epoch: int) -> None:
        """Begin an epoch."""
        self._random.manual_seed(mixed(self._seed, epoch, self._rank))
        for totals in self._late:
            totals.begin(epoch)

    def close(self) -> None:
        """Receive the pending messages."""
        for totals in self._late:
            totals.drain()
