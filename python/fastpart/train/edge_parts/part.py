"""The part of the edges that a worker computes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args

import torch

from ...core import parameters
from ...errors import ParameterError
from ..config import Options
from ..edge_data import EdgeDataset
from ..full_graph.part import Tools, WorkerPart
from ..scores import Task
from ..seeds import mixed
from ..trainer import Exchange
from .delayed import DelayedTotals
from .exchange import ExactTotals, LocalTotals, Totals
from .graph import EdgeLayer, Edges
from .local import Copies, load

MAX_DELAY = 1000
EXCHANGES: tuple[Exchange, ...] = get_args(Exchange)


def checked(delay: int, exchange: Exchange) -> dict[str, Any]:
    """Return the two parameters that decide when copies exchange their sums.

    Raises
    ------
    ParameterError
        An invalid value, or a delay without exchange.
    """
    delay = parameters.integer("delay", delay, 0, MAX_DELAY)
    if parameters.choice("exchange", exchange, EXCHANGES) == "never" and delay:
        raise ParameterError(f'delay: {delay}, but exchange="never" sends no messages. Leave one of them out')
    return {"delay": delay, "exchange": exchange}


@dataclass
class EdgeWorkerPart(WorkerPart):
    """The part of the edges that a worker computes on, with the totals that it waits for."""

    seed: int = 0
    delayed: list[DelayedTotals] = field(default_factory=list)
    random: torch.Generator = field(default_factory=torch.Generator)
    first: int | None = None

    @property
    def own(self) -> int:
        """Number of the roots. The other copies have their root elsewhere."""
        return int(self.facts["roots"])

    def begin(self, epoch: int) -> None:
        """Begin an epoch. After a resume there are no pending messages, so the delay begins anew."""
        self.first = epoch if self.first is None else self.first
        self.random.manual_seed(mixed(self.seed, epoch, self.tools.wire.rank))
        for totals in self.delayed:
            totals.begin(epoch, self.first)

    def close(self) -> None:
        """Receive the pending messages."""
        for totals in self.delayed:
            totals.drain()


def load_part(dataset: EdgeDataset, options: Options, how: dict[str, Any], tools: Tools) -> EdgeWorkerPart:
    """Return the part of this worker. ``how`` holds the delay."""
    copies = load(dataset, tools.wire.rank).to(tools.device)
    return part_of(copies, dataset.task, dataset.num_train, options, how, tools)


def part_of(
    copies: Copies, task: Task, num_train: int, options: Options, how: dict[str, Any], tools: Tools
) -> EdgeWorkerPart:
    """Return the part of a worker that has some copies of vertices."""
    delay, layers = None if how["exchange"] == "never" else how["delay"], options.layers
    edges, random = Edges(copies, tools), torch.Generator(tools.device)
    at_once = ExactTotals(copies, tools.wire, tools.clock)

    def layer(index: int, totals: Totals, remembers: bool) -> EdgeLayer:
        last = index == layers - 1
        return EdgeLayer(edges, totals, tools.clock, last=last, remembers=remembers, random=random)

    # Features never change, so their sums are exchanged once, without a delay. Without communication they are not
    # exchanged, and the scores, which are always exact, do not keep a second copy of the sums.
    exact = [layer(index, at_once, remembers=index == 0 and delay is not None) for index in range(layers)]
    late = [DelayedTotals(copies, delay, tools.wire, tools.clock) for _ in range(layers)] if delay else []
    if delay is None:
        trained = [layer(index, LocalTotals(copies), remembers=index == 0) for index in range(layers)]
    elif delay:
        trained = [exact[0], *(layer(index, late[index], False) for index in range(1, layers))]
    else:
        trained = exact
    facts = {
        "vertices": len(copies.vertices),
        "roots": copies.num_roots,
        "edges": len(copies.indices),
    }
    return EdgeWorkerPart(
        task, copies.features, copies.labels, copies.splits, num_train, trained, exact, tools, facts,
        options.seed, late, random,
    )  # fmt: skip
