"""The exchange of SANCUS: blocks of rows, broadcast unless the copies of the others are good enough."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor

from ....errors import ParameterError, arg
from ...data.dataset import Dataset
from ...graphs.neighbourhood import Neighbourhood
from ...memory import MORE_PARTS, Need, widths
from ...method_options import SancusOptions
from .blocks import ROWS, Blocks, Matrix
from .exchange import Exchange, Tools
from .wire import Wire


class Bound(ABC):
    """A bound on how stale the copies of blocks may be.

    All processes must get the same answer before any of them sends a block.

    Attributes
    ----------
    compares : bool
        Whether it needs the rows of the last broadcast.
    """

    compares = False

    @abstractmethod
    def due(self, epoch: int, x: Tensor, last: Tensor | None) -> list[bool]:
        """Return for each block whether to broadcast it. Copies of all blocks exist.

        Parameters
        ----------
        epoch : int
            From 0.
        x, last : torch.Tensor
            The block of this process, and its copy at the readers.
        """


class PeriodBound(Bound):
    """Broadcast all blocks in every epoch that ``period`` divides (definition 1, figure 14(a))."""

    def __init__(self, period: int, wire: Wire) -> None:
        self._period, self._k = period, wire.size

    def due(self, epoch: int, x: Tensor, last: Tensor | None) -> list[bool]:
        """Return the same for all blocks."""
        return [epoch % self._period == 0] * self._k


class AgeBound(Bound):
    """Broadcast a block before its copies get older than ``max_age`` epochs (definition 2, figure 14(b)).

    In the paper workers run at different speeds, so their copies have different ages. Here all workers are in the same
    epoch, and ages alone would make all blocks due at once, as with :class:`PeriodBound`. So the first copies last
    differently long: block q is due again after 1 + (q mod (max_age + 1)) epochs, and then every max_age + 1 epochs.
    About k / (max_age + 1) blocks are broadcast in each epoch.
    """

    def __init__(self, max_age: int, wire: Wire) -> None:
        self._period, self._k = max_age + 1, wire.size

    def due(self, epoch: int, x: Tensor, last: Tensor | None) -> list[bool]:
        """Return which blocks are due."""
        return [(epoch - 1 - q) % self._period == 0 for q in range(self._k)]


class ChangeBound(Bound):
    """Broadcast a block whose relative distance from its copies exceeds ``max_change`` (definition 3, figure 14(c))."""

    compares = True

    def __init__(self, max_change: float, wire: Wire) -> None:
        self._most, self._wire = max_change, wire

    def due(self, epoch: int, x: Tensor, last: Tensor | None) -> list[bool]:
        """Return the decisions of the owners."""
        assert last is not None
        near = bool((x - last).norm() <= self._most * last.norm())  # False for NaN, so that NaN spreads
        flags = torch.zeros(self._wire.size, device=x.device)
        flags[self._wire.rank] = float(not near)
        return [flag > 0 for flag in self._wire.total(flags).tolist()]


BOUNDS: dict[str, Callable[[Any, Wire], Bound]] = {
    "max_age": AgeBound,
    "max_change": ChangeBound,
    "period": PeriodBound,
}


def bound(options: SancusOptions, wire: Wire) -> Bound | None:
    """Return the bound on staleness. None without one."""
    values = ((bound_, getattr(options, name)) for name, bound_ in BOUNDS.items())
    return next((bound_(value, wire) for bound_, value in values if value is not None), None)


@dataclass
class Epoch:
    """Counts of the blocks in an epoch, over all counted layers.

    Attributes
    ----------
    number : int
        From 0.
    broadcasts, skipped : int
        Blocks that were broadcast, and blocks that were read from copies. Blocks without readers are not counted.
    """

    number: int = -1
    broadcasts: int = 0
    skipped: int = 0

    def begin(self, number: int) -> None:
        """Begin an epoch, and reset the counts."""
        self.number, self.broadcasts, self.skipped = number, 0, 0


class Staleness:
    """Decides for a layer which blocks are broadcast in training, and stores the copies.

    After a resume there are no copies, so all blocks are broadcast. A layer may compute several products in an epoch.
    Each product has its own copies, by its position.

    Parameters
    ----------
    limit : Bound or None
        None: all blocks are broadcast, and no copies are stored.
    epoch : Epoch
        The epoch of all layers that are counted together.
    readers : sequence of sequence of int
        The processes that read each block.
    rank : int
        The block of this process.
    """

    def __init__(
        self, limit: Bound | None, epoch: Epoch, readers: Sequence[Sequence[int]], rank: int
    ) -> None:
        self._bound, self._epoch, self._readers, self._rank = limit, epoch, readers, rank
        self._products: list[dict[int, Tensor]] = []
        self._at, self._next = -1, 0

    def decide(self, x: Tensor) -> tuple[list[bool], dict[int, Tensor] | None]:
        """Return which blocks are broadcast, and the copies by block, where received blocks are stored."""
        fresh, copies = self._decided(x.detach())
        chosen = [now for now, readers in zip(fresh, self._readers, strict=True) if readers]
        self._epoch.broadcasts += sum(chosen)
        self._epoch.skipped += len(chosen) - sum(chosen)
        return fresh, copies

    def _decided(self, x: Tensor) -> tuple[list[bool], dict[int, Tensor] | None]:
        fresh = [True] * len(self._readers)
        if self._bound is None:
            return fresh, None
        index = self._index()
        if index == len(self._products):
            self._products.append({})
        else:
            last = self._products[index].get(self._rank)
            fresh = self._bound.due(self._epoch.number, x, last)
        copies = self._products[index]
        if self._bound.compares and fresh[self._rank]:
            copies[self._rank] = x.clone()
        return fresh, copies

    def _index(self) -> int:
        """Return the position of this product in the epoch."""
        if self._at != self._epoch.number:
            self._at, self._next = self._epoch.number, 0
        self._next += 1
        return self._next - 1


class RowBlocks(Neighbourhood):
    """The in-edges of the inner vertices of one part, for one layer.

    Parameters
    ----------
    blocks : Blocks
        The part.
    matrix : Matrix
        Its products.
    staleness : Staleness
        Decides what is broadcast.
    """

    def __init__(self, blocks: Blocks, matrix: Matrix, staleness: Staleness, remembers: bool = False) -> None:
        super().__init__()
        self._matrix, self._staleness = matrix, staleness
        self.remembers = remembers
        self.num_targets = blocks.num_own
        self.vertices = blocks.vertices
        self.source_degree = self.target_degree = blocks.degree

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum over all in-edges of the whole graph."""
        return self._matrix.times(x, *self._staleness.decide(x))

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the in-edges of each target."""
        return self.sum(x) / self.target_degree.clamp(min=1).to(x.dtype).unsqueeze(1)

    def attend(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: attention changes the weights of edges in each epoch."""
        raise ParameterError(
            "model: sancus needs layers that multiply by a constant matrix of the edges, but attention changes the "
            "weights of the edges in each epoch. Use a model without attention, or train with distgnn or sdt"
        )


class BlocksExchange(Exchange):
    """The blocks of a part of the vertices."""

    dataset, part, held = Dataset, Blocks, "the rows of a part"
    decisive = ("rows", *BOUNDS)

    def __init__(self, part: Blocks, options: SancusOptions, tools: Tools) -> None:
        rows = ROWS[options.rows](part, tools.wire, tools.clock)
        matrix, limit, self._epoch = Matrix(rows, tools), bound(options, tools.wire), Epoch()
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
        bounded = any(getattr(options, name) is not None for name in BOUNDS)
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
