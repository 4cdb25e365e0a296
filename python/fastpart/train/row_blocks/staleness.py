"""Which blocks are broadcast in an epoch, and which ones their readers have a copy of that is good enough."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ... import parameters
from ...errors import ParameterError
from ..full_graph.wire import Wire

MOST_EPOCHS = 2**31 - 1

_EXACT = {"max_age": 0, "max_change": 0, "period": 1}
"""The least value of each bound, with which all rows are broadcast in every epoch."""


def checked(max_age: int | None, max_change: float | None, period: int | None) -> dict[str, Any]:
    """Return the one bound that was given, by its name; nothing if there is none, or if it is exact.

    Raises
    ------
    ParameterError
        More than one, or a value that cannot be.
    """
    given = {"max_age": max_age, "max_change": max_change, "period": period}
    values = {name: _checked(name, value) for name, value in given.items() if value is not None}
    if len(values) > 1:
        raise ParameterError(f"{' and '.join(values)}: more than one bound on staleness; give one of them")
    return {name: value for name, value in values.items() if value != _EXACT[name]}


def _checked(name: str, value: Any) -> float:
    if name != "max_change":
        return parameters.integer(name, value, _EXACT[name], MOST_EPOCHS)
    number = parameters.number(name, value)
    if not number >= 0:
        raise ParameterError(f"{name}: {number} is below 0")
    return number


class Bound(ABC):
    """A bound on how stale the copies of blocks may be.

    All processes must come to the same answer, before any of them sends a block.

    Attributes
    ----------
    compares : bool
        Whether it is to be shown what was broadcast last.
    """

    compares = False

    @abstractmethod
    def due(self, epoch: int, x: Tensor, last: Tensor | None) -> list[bool]:
        """Return for each block whether it is to be broadcast, given that there are copies of all of them.

        Parameters
        ----------
        epoch : int
            From 0.
        x, last : torch.Tensor
            The block of this process, and what its readers have of it.
        """


class Fixed(Bound):
    """All blocks together, in every epoch that ``period`` divides (definition 1 of the survey, figure 14(a))."""

    def __init__(self, period: int, wire: Wire) -> None:
        self._period, self._k = period, wire.size

    def due(self, epoch: int, x: Tensor, last: Tensor | None) -> list[bool]:
        """Return the same for all blocks."""
        return [epoch % self._period == 0] * self._k


class Aged(Bound):
    """Every block before its copies get older than ``max_age`` epochs (definition 2, figure 14(b)).

    Workers that run at speeds of their own have copies of different ages. Here all of them are in the same epoch, so
    that ages alone would make all blocks due at once, which is :class:`Fixed`. Thus the first copies do not all last
    as long: block q is due again after 1 + (q mod (max_age + 1)) epochs, and from then on every max_age + 1 epochs. So
    about k / (max_age + 1) blocks are broadcast in each epoch, and some of what everybody sees is always new.
    """

    def __init__(self, max_age: int, wire: Wire) -> None:
        self._period, self._k = max_age + 1, wire.size

    def due(self, epoch: int, x: Tensor, last: Tensor | None) -> list[bool]:
        """Return which blocks have their turn."""
        return [(epoch - 1 - q) % self._period == 0 for q in range(self._k)]


class Changed(Bound):
    """Blocks that are farther than ``max_change`` from their copies, relative to these (definition 3, figure 14(c))."""

    compares = True

    def __init__(self, max_change: float, wire: Wire) -> None:
        self._most, self._wire = max_change, wire

    def due(self, epoch: int, x: Tensor, last: Tensor | None) -> list[bool]:
        """Return what the owners say of their blocks."""
        assert last is not None
        near = bool(
            (x - last).norm() <= self._most * last.norm()
        )  # of NaN it is not said, so that it spreads
        flags = torch.zeros(self._wire.size, device=x.device)
        flags[self._wire.rank] = float(not near)
        return [flag > 0 for flag in self._wire.total(flags).tolist()]


_BOUNDS: dict[str, Callable[[Any, Wire], Bound]] = {"max_age": Aged, "max_change": Changed, "period": Fixed}


def bound(given: dict[str, Any], wire: Wire) -> Bound | None:
    """Return the bound that :func:`checked` let through; None without any."""
    return next((bound_(given[name], wire) for name, bound_ in _BOUNDS.items() if name in given), None)


@dataclass
class Epoch:
    """What happened to the blocks in an epoch, in all layers that are counted.

    Attributes
    ----------
    number : int
        From 0.
    broadcasts, skipped : int
        Blocks that were broadcast, and those whose readers took their copies. Blocks without readers are neither.
    """

    number: int = -1
    broadcasts: int = 0
    skipped: int = 0

    def begin(self, number: int) -> None:
        """Count anew."""
        self.number, self.broadcasts, self.skipped = number, 0, 0


class Staleness:
    """Decides for a layer which blocks are broadcast in training, and keeps the copies.

    After a resume there are no copies, so that all blocks are broadcast, whatever the epoch. A layer may take several
    products in an epoch: each has copies of its own, by their order.

    Parameters
    ----------
    limit : Bound or None
        None: all blocks are broadcast, and no copies kept.
    epoch : Epoch
        The epoch of all layers.
    read : sequence of bool
        Whether a block has readers.
    rank : int
        Which block is that of this process.
    """

    def __init__(self, limit: Bound | None, epoch: Epoch, read: Sequence[bool], rank: int) -> None:
        self._bound, self._epoch, self._read, self._rank = limit, epoch, read, rank
        self._products: list[dict[int, Tensor]] = []
        self._at, self._next = -1, 0

    def decide(self, x: Tensor) -> tuple[list[bool], dict[int, Tensor] | None]:
        """Return which blocks are broadcast, and the copies by block, for those that come to be put in."""
        fresh, copies = self._decided(x.detach())
        chosen = [now for now, read in zip(fresh, self._read, strict=True) if read]
        self._epoch.broadcasts += sum(chosen)
        self._epoch.skipped += len(chosen) - sum(chosen)
        return fresh, copies

    def _decided(self, x: Tensor) -> tuple[list[bool], dict[int, Tensor] | None]:
        fresh = [True] * len(self._read)
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
        """Return which product of the epoch this is."""
        if self._at != self._epoch.number:
            self._at, self._next = self._epoch.number, 0
        self._next += 1
        return self._next - 1
