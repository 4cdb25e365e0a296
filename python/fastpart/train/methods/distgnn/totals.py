"""The exchange of DistGNN: totals over all copies of a vertex, at every copy, at once, late or never.

Leaves send their values up to their root. The root adds them and sends the total down. This map S of the values at all
copies is linear and symmetric, so the gradients go the same way: backward(S) = S. After the last layer only roots are
needed, so totals do not go down, and gradients do not go up.

Messages are at most :data:`~fastpart.train.methods.distgnn.wire.MESSAGE_BYTES` long. Buffers hold one message per
process for any number of vertices.

Delayed totals (cd-r) have r epochs to arrive, and each vertex takes part in every r-th epoch. The vertices are split
into r bins. In epoch e, bin e mod r takes part. Leaves send their sums to their root. Roots add the sums that their
leaves sent r epochs ago to their own current sums, and send the totals back. Leaves replace their sums by the total
that the root sent r epochs ago. All other copies use the sums and means over their own edges, and so does the bin until
its first messages arrive. So an epoch sends 1/r of the bytes of a delay of 0, and no process waits for messages of the
same epoch. Gradients go the same way, with their own messages.

A vertex is in the same bin at all its copies, so its total includes all copies. (In the published program the bin
depends on the position in the list that a leaf and a root share, so the leaves of a vertex may be in several bins.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....errors import ParameterError, arg
from ....partitions.part_files import LocalIds
from ....partitions.parts import EdgePartData
from ...data.dataset import EdgeDataset
from ...graphs.kernels import Kernel, with_loops
from ...graphs.neighbourhood import Neighbourhood, Score
from ...memory import Need, widths
from ...method_options import DistGNNOptions
from ...options import mixed
from ...ranks import EXCHANGE, Clock
from .exchange import Exchange, Part, Tools
from .wire import Lists, PendingSwap, Wire, longest_of, swapped


def _none() -> Lists:
    return Lists([torch.empty(0, dtype=torch.int64)])


@dataclass
class Copies(Part):
    """The vertices of a part. Its own vertices are the roots. The others have their root elsewhere.

    Attributes
    ----------
    up, down : Lists
        By part. ``up``: leaves here whose root is there. ``down``: roots here that have a leaf there. Both ascend by
        vertex.
    """

    up: Lists = field(default_factory=_none)
    down: Lists = field(default_factory=_none)

    @staticmethod
    def links(stored: EdgePartData, new: LocalIds, parts: int, device: torch.device) -> dict[str, Any]:
        """Return ``up`` and ``down``."""

        def by_part(ids_of: Callable[[int], LocalIds]) -> Lists:
            return Lists(
                [torch.from_numpy(new[ids_of(part)]).to(device, torch.int64) for part in range(parts)]
            )

        return {"up": by_part(stored.send), "down": by_part(stored.recv)}

    @property
    def local_degree(self) -> Tensor:
        """In-edges of each copy that are here, int64."""
        return torch.from_numpy(np.diff(self.indptr)).to(self.degree.device)

    @property
    def facts(self) -> dict[str, int]:
        """Numbers of copies, of roots among them, and of edges."""
        return {"vertices": len(self.vertices), "roots": self.num_own, "edges": len(self.indices)}


Put = Callable[[Tensor, Tensor], object]
"""Called with the ids of vertices and their received rows."""


class Totals(ABC):
    """The way in which the copies of vertices get the sums over all edges.

    Attributes
    ----------
    complete : bool
        Whether the totals always include everything.
    degree : torch.Tensor
        In-edges in the total of each copy in this epoch, int64.
    """

    complete = False
    degree: Tensor

    def total(self, x: Tensor, last: bool) -> Tensor:
        """Return the sums over all edges, in place of those over the edges here. In the last layer, only at roots."""
        total: Tensor = _Total.apply(x, self, last)
        return total

    @abstractmethod
    def mix(self, x: Tensor, way: str, up: bool, down: bool) -> None:
        """Add the rows of leaves to those of their roots, and copy those of roots to their leaves.

        ``way`` is what the rows are: ``"values"`` or ``"gradients"``.
        """

    @abstractmethod
    def largest(self, x: Tensor) -> Tensor:
        """Return the largest of each number over all copies, without a gradient."""


class ExactTotals(Totals):
    """Every copy gets the total in the same epoch."""

    complete = True

    def __init__(self, copies: Copies, wire: Wire, clock: Clock) -> None:
        self._up, self._down, self._wire, self._clock = copies.up, copies.down, wire, clock
        self._longest = longest_of(wire, copies.up)
        self.degree = copies.degree

    def mix(self, x: Tensor, way: str, up: bool, down: bool) -> None:
        """Exchange the rows of this epoch."""
        if up:
            self._move(x, self._up, self._down, lambda ids, rows: x.index_add_(0, ids, rows))
        if down:
            self._move(x, self._down, self._up, lambda ids, rows: x.index_copy_(0, ids, rows))

    def largest(self, x: Tensor) -> Tensor:
        """Return the largest over all copies."""
        largest = x.detach().clone()

        def put(ids: Tensor, rows: Tensor) -> None:
            ends = ids.view(-1, *[1] * (rows.dim() - 1)).expand_as(rows)
            largest.scatter_reduce_(0, ends, rows, "amax")

        self._move(largest, self._up, self._down, put)
        self.mix(largest, "values", up=False, down=True)
        return largest

    def _move(self, x: Tensor, out: Lists, into: Lists, put: Put) -> None:
        with self._clock.timed(EXCHANGE):
            for lists, rows in swapped(self._wire, x, out, into, self._longest):
                put(lists.ids, rows)


class LocalTotals(Totals):
    """Every copy keeps its own sums, without messages (0c)."""

    def __init__(self, copies: Copies) -> None:
        self.degree = copies.local_degree

    def total(self, x: Tensor, last: bool) -> Tensor:
        """Return the sums over the edges here."""
        return x

    def mix(self, x: Tensor, way: str, up: bool, down: bool) -> None:
        """Do nothing."""

    def largest(self, x: Tensor) -> Tensor:
        """Return the largest over the edges here."""
        return x.detach()


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, totals: Totals, last: bool) -> Tensor:
        ctx.totals, ctx.last = totals, last
        ctx.mark_dirty(x)
        totals.mix(x, "values", up=True, down=not last)
        return x

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        mixed = gradient.clone(memory_format=torch.contiguous_format)
        ctx.totals.mix(mixed, "gradients", up=not ctx.last, down=True)
        return mixed, None, None


class Edges:
    """The edges of a part, for all layers."""

    def __init__(self, copies: Copies, tools: Tools) -> None:
        self.copies, self.clock, self._device = copies, tools.clock, tools.device
        self._kernels: dict[int, Kernel] = {}

    def kernel(self, loops: int = 0) -> Kernel:
        """Return the sums over the edges, and over a loop at each of the first so many copies."""
        if loops not in self._kernels:
            rows = self.copies.indptr, self.copies.indices
            rows = with_loops(*rows, loops) if loops else rows
            self._kernels[loops] = Kernel(*rows, len(self.copies.vertices), self._device)
        return self._kernels[loops]


class EdgeLayer(Neighbourhood):
    """The copies of vertices in one part, for one layer. Targets are all copies, in the last layer only the roots."""

    def __init__(
        self, edges: Edges, totals: Totals, random: torch.Generator, *, last: bool, remembers: bool
    ) -> None:
        super().__init__()
        copies = edges.copies
        self._edges, self._totals, self._random, self._last = edges, totals, random, last
        self.remembers = remembers
        self.num_targets = copies.num_own if last else len(copies.vertices)
        self.vertices = copies.vertices
        self.source_degree, self.target_degree = copies.degree, copies.degree[: self.num_targets]

    def ends(self, x: Tensor) -> Tensor:
        """Return all rows, because in-edges also lead to leaves."""
        return x

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the known in-edges."""
        included = self._totals.degree[: self.num_targets].clamp(min=1).to(x.dtype)
        return self._total(x) / included.unsqueeze(1)

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum over all in-edges, or an estimate of it from the known ones."""
        return self._total(x) if self._totals.complete else super().sum(x)

    def _total(self, x: Tensor) -> Tensor:
        total = self._totals.total(self._edges.kernel().summed(x, self._edges.clock), self._last)
        return total[: self.num_targets]

    def attend(
        self,
        values: Tensor,
        source: Tensor,
        target: Tensor,
        score: Score,
        drop: float,
        *,
        loops: bool = True,
        of_edges: Tensor | None = None,
    ) -> Tensor:
        """Return the sums weighted by attention. Numerators and denominators of the softmax are separate totals."""
        copies = self._edges.copies  # a loop at each root is one for each vertex of the graph
        looped = copies.num_own if self._totals.complete else len(copies.vertices)
        kernel = self._edges.kernel(looped if loops else 0)
        scores = score(kernel.of_sources(source), kernel.at(target))
        largest = self._totals.largest(kernel.largest(scores))
        weights = torch.exp(scores - kernel.at(largest))
        below = kernel.total(weights)
        above = kernel.weighted(values, self._dropped(weights, drop), of_edges)
        heads, width = values.shape[1:]
        both = self._totals.total(torch.cat([above, below], 2).flatten(1), self._last)[: self.num_targets]
        above, below = both.view(-1, heads, width + 1).split([width, 1], 2)
        # Without loops a vertex may have no edges, and its denominator is 0.
        return above / (below if loops else below.clamp(min=torch.finfo(below.dtype).tiny))

    def _dropped(self, weights: Tensor, share: float) -> Tensor:
        # Every edge is in one process only, so processes need not agree on random numbers.
        if not share:
            return weights
        mask = torch.empty_like(weights).bernoulli_(1 - share, generator=self._random)
        return weights * mask / (1 - share)


def bins_of(vertices: Tensor, count: int) -> Tensor:
    """Return the bin of each vertex. A hash of the id makes bins of equal size."""
    scattered = vertices.cpu().numpy().astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bins = (scattered >> np.uint64(32)) % np.uint64(count)
    return torch.from_numpy(bins.astype(np.int64)).to(vertices.device)


class _Pipe:
    """Pending messages in one direction, in order, with their epochs."""

    def __init__(self, wire: Wire, clock: Clock) -> None:
        self._wire, self._clock = wire, clock
        self._posted: deque[tuple[int, PendingSwap]] = deque()

    def post(self, epoch: int, x: Tensor, out: Lists, into: Lists) -> None:
        """Begin to send rows of ``x``."""
        with self._clock.timed(EXCHANGE):
            self._posted.append((epoch, self._wire.swap(x[out.ids], out.counts, into.counts, late=True)))

    def take(self, epoch: int) -> Tensor | None:
        """Return the rows that were sent in an epoch. None if there are none."""
        if not self._posted or self._posted[0][0] != epoch:
            return None
        with self._clock.timed(EXCHANGE):
            return self._posted.popleft()[1].wait()

    def drain(self) -> None:
        """Wait for all pending messages."""
        while self._posted:
            self._posted.popleft()[1].wait()


class DelayedTotals(Totals):
    """The totals of one layer. Messages are used ``delay`` epochs after they were sent."""

    def __init__(self, copies: Copies, delay: int, wire: Wire, clock: Clock) -> None:
        self._delay = delay
        bins = bins_of(copies.vertices, delay)
        self._bins = bins
        self._up = [_of_bin(copies.up, bins, number) for number in range(delay)]
        self._down = [_of_bin(copies.down, bins, number) for number in range(delay)]
        self._pipes = {
            (way, up): _Pipe(wire, clock) for way in ("values", "gradients") for up in (True, False)
        }
        wire.subgroups([range(wire.size)])
        self._all, self._here = copies.degree, copies.local_degree
        self._is_root = torch.arange(len(bins), device=bins.device) < copies.num_own
        self._epoch, self._age = 0, -1

    def begin(self, epoch: int) -> None:
        """Begin an epoch. Once messages have arrived, the totals of its bin include all in-edges."""
        self._epoch, self._age = epoch, self._age + 1
        reached = torch.where(self._is_root, self._age >= self._delay, self._age >= 2 * self._delay)
        included = reached & (self._bins == epoch % self._delay)
        self.degree = torch.where(included, self._all, self._here)

    def largest(self, x: Tensor) -> Tensor:
        """Refuse: sums of attention from different epochs have different scales."""
        raise ParameterError(
            "delay: attention needs the largest score of all neighbours in this epoch, but delayed sums are older. Use "
            f"{arg('delay', 0)} or {arg('exchange', 'never')}, or a model without attention"
        )

    def mix(self, x: Tensor, way: str, up: bool, down: bool) -> None:
        """Send the current sums, and put the delayed ones into ``x``."""
        number = self._epoch % self._delay
        leaves, roots = self._up[number], self._down[number]
        if up:
            self._pipes[way, True].post(self._epoch, x, leaves, roots)
            received = self._pipes[way, True].take(self._epoch - self._delay)
            if received is None:  # there are no totals to send back yet
                return
            x.index_add_(0, roots.ids, received)
        if down:
            self._pipes[way, False].post(self._epoch, x, roots, leaves)
            received = self._pipes[way, False].take(self._epoch - self._delay)
            if received is not None:
                x.index_copy_(0, leaves.ids, received)

    def drain(self) -> None:
        """Wait for all messages, so that no process ends while another process still sends to it."""
        for pipe in self._pipes.values():
            pipe.drain()


def _of_bin(lists: Lists, bins: Tensor, number: int) -> Lists:
    return Lists([ids[bins[ids] == number] for ids in lists])


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
