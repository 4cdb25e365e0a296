"""What every step of an epoch has: a function of the seed, the epoch and the directory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np

from ...loading.seeds import Ids, Seeds, owner_of
from ..seeds import mixed

Order = Literal["global", "parts"]
ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True)
class Work:
    """Training vertices of a step that are sampled together.

    Attributes
    ----------
    lane : int
        The lane, or -1 if batches of several lanes are sampled together.
    share : int
        The compute worker that gets the batch.
    held : tuple of int or None
        The parts to sample over. None: all.
    positions : numpy.ndarray
        The vertices, as positions among all seeds.
    """

    lane: int
    share: int
    held: tuple[int, ...] | None
    positions: Ids


class Epoch(Protocol):
    """The steps of an epoch, which several *lanes* make together."""

    @property
    def steps(self) -> int:
        """Number of steps."""

    @property
    def lanes(self) -> int:
        """Number of lanes."""

    def count(self, step: int) -> int:
        """Return the number of training vertices of a step."""

    def owners(self, alive: Collection[int]) -> dict[int, int]:
        """Deal the lanes to batch workers."""

    def work(self, step: int, lanes: Collection[int], shares: int) -> list[Work]:
        """Return what lanes have to make of a step, for so many compute workers."""


@dataclass(frozen=True)
class Schedule:
    """The epochs of a training.

    Attributes
    ----------
    seeds : Seeds
        The training vertices.
    starts : numpy.ndarray
        First row of each part, and the number of rows.
    batch_size : int
        Training vertices per step.
    seed : int
        The seed of the training.
    batch_workers, hold : int
        Of ``order="parts"``.
    order : {"global", "parts"}
        See :func:`fastpart.train.armada`.
    """

    seeds: Seeds
    starts: Ids
    batch_size: int
    seed: int
    order: Order
    batch_workers: int
    hold: int

    def epoch(self, number: int) -> Epoch:
        """Return the steps of an epoch."""
        positions = self.seeds.order(self.seed, number)
        owners = owner_of(self.seeds.rows, self.starts)[positions]
        parts = shuffled(len(self.starts) - 1, self.seed, number)
        if self.order == "global":
            return Global(positions, owners, parts, self.batch_size)
        lanes = [parts[lane :: self.batch_workers] for lane in range(self.batch_workers)]
        return InTurn(
            [Turns.of(lane, self.hold, positions, owners) for lane in lanes],
            max(1, -(-len(positions) // self.batch_size)),
        )


def shuffled(count: int, seed: int, epoch: int) -> list[int]:
    """Return the parts in a random order. It is the same with any numpy."""
    return sorted(range(count), key=lambda part: mixed(seed, epoch, part))


def shares_of(first: int, count: int, shares: int) -> Ids:
    """Return the compute worker of each of the training vertices of a step from a given one on."""
    return (first + np.arange(count)) % shares


@dataclass(frozen=True)
class Global:
    """The order of ``sampled``. There is a lane for every part."""

    positions: Ids
    owner: Ids
    parts: Sequence[int]
    batch_size: int

    @property
    def steps(self) -> int:
        """Number of steps."""
        return -(-len(self.positions) // self.batch_size)

    @property
    def lanes(self) -> int:
        """Number of lanes."""
        return len(self.parts)

    def count(self, step: int) -> int:
        """Return the number of training vertices of a step."""
        return min(self.batch_size, len(self.positions) - step * self.batch_size)

    def owners(self, alive: Collection[int]) -> dict[int, int]:
        """Deal the lanes to batch workers."""
        workers = sorted(alive)
        return {part: workers[place % len(workers)] for place, part in enumerate(self.parts)}

    def work(self, step: int, lanes: Collection[int], shares: int) -> list[Work]:
        """Return what lanes have to make of a step."""
        here = slice(step * self.batch_size, (step + 1) * self.batch_size)
        positions = self.positions[here]
        share = shares_of(0, len(positions), shares)
        chosen = np.zeros(self.lanes, np.bool_)
        chosen[list(lanes)] = True
        share[~chosen[self.owner[here]]] = -1
        works = [Work(-1, each, None, positions[share == each]) for each in range(shares)]
        return [work for work in works if len(work.positions)]


@dataclass(frozen=True)
class Turns:
    """The turns of a lane: in each, some parts are in memory, and the vertices of those that are new are trained on.

    Attributes
    ----------
    held : list of tuple of int
        The parts of each turn.
    positions : numpy.ndarray
        The training vertices of all turns.
    ends : numpy.ndarray
        Where the vertices of each turn end.
    """

    held: list[tuple[int, ...]]
    positions: Ids
    ends: Ids

    @classmethod
    def of(cls, parts: Sequence[int], hold: int, positions: Ids, owner: Ids) -> Turns:
        """Return the turns of some parts: the first ones together, then each of the others in the place of another."""
        count = max(1, len(parts) - hold + 1)
        held = [tuple(parts[turn : turn + hold]) for turn in range(count)]
        new = [held[0], *((parts[turn + hold - 1],) for turn in range(1, count))]
        those = [positions[np.isin(owner, parts)] for parts in new]
        ends = np.cumsum([len(each) for each in those])
        return cls(held, np.concatenate(those), ends)

    def bounds(self, step: int, steps: int) -> tuple[int, int]:
        """Return where the vertices of a step begin and end. All steps have about as many."""
        return len(self.positions) * step // steps, len(self.positions) * (step + 1) // steps


@dataclass(frozen=True)
class InTurn:
    """The order of the paper. There is a lane for every batch worker, and each samples over the parts that it holds."""

    turns: Sequence[Turns]
    steps: int

    @property
    def lanes(self) -> int:
        """Number of lanes."""
        return len(self.turns)

    def count(self, step: int) -> int:
        """Return the number of training vertices of a step."""
        bounds = [turns.bounds(step, self.steps) for turns in self.turns]
        return sum(end - first for first, end in bounds)

    def owners(self, alive: Collection[int]) -> dict[int, int]:
        """Deal the lanes to batch workers. Each gets its own one, as long as all are alive."""
        workers = sorted(alive)
        return {lane: lane if lane in alive else workers[lane % len(workers)] for lane in range(self.lanes)}

    def work(self, step: int, lanes: Collection[int], shares: int) -> list[Work]:
        """Return what lanes have to make of a step. A turn may end within it."""
        works = []
        for lane in sorted(lanes):
            turns = self.turns[lane]
            first, end = turns.bounds(step, self.steps)
            share = shares_of(lane, end - first, shares)
            turn = np.searchsorted(turns.ends, np.arange(first, end), side="right")
            for number in np.unique(turn).tolist():
                for each in range(shares):
                    those = first + np.flatnonzero((turn == number) & (share == each))
                    if len(those):
                        works.append(Work(lane, each, turns.held[number], turns.positions[those]))
        return works
