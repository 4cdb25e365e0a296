"""The exchange of DistGNN: totals at all copies of a vertex, at once, late or never."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import torch

from ....core import parameters
from ....errors import ParameterError
from ...config import Options
from ...edge_data import EdgeDataset
from ...memory import Need, widths
from ...seeds import mixed
from ...trainer import Exchange as When
from ..exchange import Exchange
from ..part import Tools
from .copies import Copies
from .delayed import DelayedTotals
from .layer import EdgeLayer, Edges
from .totals import ExactTotals, LocalTotals, Totals

MAX_DELAY = 1000


class TotalsExchange(Exchange):
    """The totals of a part of the edges. After a resume there are no pending messages, so a delay begins anew."""

    dataset, part, held = EdgeDataset, Copies, "a part of the edges"

    def __init__(self, part: Copies, options: Options, how: Mapping[str, Any], tools: Tools) -> None:
        self._seed, self._rank = options.seed, tools.wire.rank
        self._random = torch.Generator(tools.device)
        self._late: list[DelayedTotals] = []
        edges, layers, never = Edges(part, tools), options.layers, how["exchange"] == "never"

        def layer(index: int, totals: Totals, remembers: bool) -> EdgeLayer:
            return EdgeLayer(edges, totals, self._random, last=index == layers - 1, remembers=remembers)

        # Features never change, so their sums are exchanged once, without a delay. Without communication they are not
        # exchanged, and the scores, which are always exact, do not keep a second copy of the sums.
        at_once, here = ExactTotals(part, tools.wire, tools.clock), LocalTotals(part)
        self.layers = self.exact = [layer(at, at_once, at == 0 and not never) for at in range(layers)]
        if never:
            self.layers = [layer(at, here, at == 0) for at in range(layers)]
        elif how["delay"]:
            self._late = [
                DelayedTotals(part, how["delay"], tools.wire, tools.clock) for _ in range(1, layers)
            ]
            later = [layer(at, totals, False) for at, totals in enumerate(self._late, 1)]
            self.layers = [self.exact[0], *later]

    @staticmethod
    def checked(delay: int, exchange: When) -> dict[str, Any]:
        """Return the two parameters that decide when copies exchange their sums."""
        delay = parameters.integer("delay", delay, 0, MAX_DELAY)
        if parameters.choice("exchange", exchange, get_args(When)) == "never" and delay:
            raise ParameterError(
                f'delay: {delay}, but exchange="never" sends no messages. Leave one of them out'
            )
        return {"delay": delay, "exchange": exchange}

    @staticmethod
    def summary(how: Mapping[str, Any], dataset: EdgeDataset) -> dict[str, Any]:
        """Return the parameters, the number of parts, and the copies of a vertex."""
        measured = dataset.manifest.get("summary", {})
        return {**how, "parts": dataset.partition.k, "replication_factor": measured.get("rf")}

    @staticmethod
    def needs(how: Mapping[str, Any], dataset: EdgeDataset, options: Options, rows: int) -> list[Need]:
        """Return the need of messages under way."""
        late = sum(out for _, out in widths(options, dataset.task)) * 4 * 8 * rows if how["delay"] else 0
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
