"""The training vertices of every step, and the batch worker that samples them.

The training vertices of a step are a function of the seed, the epoch and the directory.

A *seed slice* is a set of training vertices: those of one part, or those of all parts that a batch worker has in memory
one after the other. One batch worker samples it for every step, in the order of the steps. When a batch worker dies,
others continue its seed slices.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, get_args

import numpy as np

from ....partitions.seeds import Ids, Seeds, owner_of
from ...method_options import Order
from ...options import mixed
from .messages import MessageError

ORDERS: tuple[Order, ...] = get_args(Order)


@dataclass(frozen=True)
class Work:
    """Training vertices of a step that are sampled together.

    Attributes
    ----------
    seed_slice : int
        The seed slice, or -1 if batches of several slices are sampled together.
    compute_worker : int
        The compute worker that gets the batch.
    parts : tuple of int or None
        The parts to sample over. None: all.
    positions : numpy.ndarray
        The vertices, as positions among all seeds.
    """

    seed_slice: int
    compute_worker: int
    parts: tuple[int, ...] | None
    positions: Ids


class Epoch(Protocol):
    """The steps of an epoch. Each takes training vertices of several seed slices."""

    @property
    def steps(self) -> int:
        """Number of steps."""

    @property
    def num_slices(self) -> int:
        """Number of seed slices."""

    def count(self, step: int) -> int:
        """Return the number of training vertices of a step."""

    def owners(self, alive: Collection[int]) -> dict[int, int]:
        """Deal the seed slices to batch workers."""

    def work(self, step: int, slices: Collection[int], compute_workers: int) -> list[Work]:
        """Return what is sampled of some slices in a step, for so many compute workers."""


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
        Number of batch workers, and of parts that each has in memory, with ``order="parts"``.
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
        slices = [parts[seed_slice :: self.batch_workers] for seed_slice in range(self.batch_workers)]
        return ByParts(
            [LoadingOrder.of(seed_slice, self.hold, positions, owners) for seed_slice in slices],
            max(1, -(-len(positions) // self.batch_size)),
        )


def shuffled(count: int, seed: int, epoch: int) -> list[int]:
    """Return the parts in a random order. It is the same with any numpy."""
    return sorted(range(count), key=lambda part: mixed(seed, epoch, part))


def compute_workers_of(first: int, count: int, compute_workers: int) -> Ids:
    """Return the compute worker of each of the training vertices of a step from a given one on."""
    return (first + np.arange(count)) % compute_workers


@dataclass(frozen=True)
class Global:
    """The steps of ``sampled``. There is a seed slice for every part."""

    positions: Ids
    owner: Ids
    parts: Sequence[int]
    batch_size: int

    @property
    def steps(self) -> int:
        """Number of steps."""
        return -(-len(self.positions) // self.batch_size)

    @property
    def num_slices(self) -> int:
        """Number of seed slices."""
        return len(self.parts)

    def count(self, step: int) -> int:
        """Return the number of training vertices of a step."""
        return min(self.batch_size, len(self.positions) - step * self.batch_size)

    def owners(self, alive: Collection[int]) -> dict[int, int]:
        """Deal the seed slices to batch workers."""
        workers = sorted(alive)
        return {part: workers[place % len(workers)] for place, part in enumerate(self.parts)}

    def work(self, step: int, slices: Collection[int], compute_workers: int) -> list[Work]:
        """Return what is sampled of some slices in a step."""
        here = slice(step * self.batch_size, (step + 1) * self.batch_size)
        positions = self.positions[here]
        worker_of = compute_workers_of(0, len(positions), compute_workers)
        chosen = np.zeros(self.num_slices, np.bool_)
        chosen[list(slices)] = True
        worker_of[~chosen[self.owner[here]]] = -1
        works = [Work(-1, each, None, positions[worker_of == each]) for each in range(compute_workers)]
        return [work for work in works if len(work.positions)]


@dataclass(frozen=True)
class LoadingOrder:
    """The order in which the parts of a seed slice are in memory.

    It is a sequence of stages. In each, some parts are in memory, and the vertices of the new ones are trained on.

    Attributes
    ----------
    stages : list of tuple of int
        The parts in memory in each stage.
    positions : numpy.ndarray
        The training vertices of all stages.
    ends : numpy.ndarray
        Where the vertices of each stage end.
    """

    stages: list[tuple[int, ...]]
    positions: Ids
    ends: Ids

    @classmethod
    def of(cls, parts: Sequence[int], hold: int, positions: Ids, owner: Ids) -> LoadingOrder:
        """Return the order of some parts: the first ones together, then each of the others replaces one."""
        count = max(1, len(parts) - hold + 1)
        stages = [tuple(parts[stage : stage + hold]) for stage in range(count)]
        new = [stages[0], *((parts[stage + hold - 1],) for stage in range(1, count))]
        those = [positions[np.isin(owner, parts)] for parts in new]
        ends = np.cumsum([len(each) for each in those])
        return cls(stages, np.concatenate(those), ends)

    def bounds(self, step: int, steps: int) -> tuple[int, int]:
        """Return where the vertices of a step begin and end. All steps have about as many."""
        return len(self.positions) * step // steps, len(self.positions) * (step + 1) // steps


@dataclass(frozen=True)
class ByParts:
    """The steps of the paper. There is a seed slice for every batch worker. It samples over the parts in its memory."""

    orders: Sequence[LoadingOrder]
    steps: int

    @property
    def num_slices(self) -> int:
        """Number of seed slices."""
        return len(self.orders)

    def count(self, step: int) -> int:
        """Return the number of training vertices of a step."""
        bounds = [order.bounds(step, self.steps) for order in self.orders]
        return sum(end - first for first, end in bounds)

    def owners(self, alive: Collection[int]) -> dict[int, int]:
        """Deal the seed slices to batch workers. Each gets its own one, as long as all are alive."""
        workers = sorted(alive)
        return {
            seed_slice: seed_slice if seed_slice in alive else workers[seed_slice % len(workers)]
            for seed_slice in range(self.num_slices)
        }

    def work(self, step: int, slices: Collection[int], compute_workers: int) -> list[Work]:
        """Return what is sampled of some slices in a step. The parts in memory may change within it."""
        works = []
        for seed_slice in sorted(slices):
            order = self.orders[seed_slice]
            first, end = order.bounds(step, self.steps)
            worker_of = compute_workers_of(seed_slice, end - first, compute_workers)
            stage_of = np.searchsorted(order.ends, np.arange(first, end), side="right")
            for stage in np.unique(stage_of).tolist():
                for each in range(compute_workers):
                    those = first + np.flatnonzero((stage_of == stage) & (worker_of == each))
                    if len(those):
                        works.append(Work(seed_slice, each, order.stages[stage], order.positions[those]))
        return works


SeedSlices = dict[int, int]
"""Seed slices of a batch worker, each with the first step to make."""


class Progress:
    """The steps that a batch worker has to make. The least comes first, for all seed slices that wait for it."""

    def __init__(self) -> None:
        self._next: SeedSlices = {}
        self._steps = self.limit = 0

    def begin(self, steps: int) -> None:
        """Begin an epoch."""
        self._next, self._steps, self.limit = {}, steps, 0

    def add(self, slices: SeedSlices) -> None:
        """Take over seed slices."""
        self._next |= slices

    def pop(self) -> tuple[int, list[int]] | None:
        """Return the next step and its seed slices. None if it must not be made yet."""
        step = min(self._next.values(), default=self._steps)
        if step >= min(self.limit, self._steps):
            return None
        slices = sorted(seed_slice for seed_slice, its_step in self._next.items() if its_step == step)
        self._next |= dict.fromkeys(slices, step + 1)
        return step, slices


class Coordinator:
    """The progress of an epoch on a compute machine. It has no threads, and sends nothing.

    Parameters
    ----------
    workers : iterable of int
        The batch workers.
    ahead : int
        How many steps may be made before they are used.

    Attributes
    ----------
    alive : set of int
        The batch workers that are left.
    """

    def __init__(self, workers: Iterable[int], ahead: int) -> None:
        self.alive = set(workers)
        self._ahead = ahead
        self._owner: dict[int, int] = {}
        self._next: dict[int, int] = {}
        self._steps = self._complete = self._used = 0

    def begin(self, owners: Mapping[int, int], steps: int) -> dict[int, SeedSlices]:
        """Begin an epoch, given the batch worker of each seed slice. Return the slices of each batch worker, if any."""
        self._owner, self._next = dict(owners), dict.fromkeys(owners, 0)
        self._steps, self._complete, self._used = steps, 0, 0
        return {worker: {} for worker in self.alive} | self._slices(self._owner)

    @property
    def limit(self) -> int:
        """The first step that must not be made yet."""
        return min(self._used + self._ahead, self._steps)

    @property
    def over(self) -> bool:
        """Whether no epoch has begun, or all steps of the last one were used."""
        return self._used == self._steps

    def has_work(self, worker: int) -> bool:
        """Return whether a batch worker has a step to make now."""
        return any(
            owner == worker and self._next[seed_slice] < self.limit
            for seed_slice, owner in self._owner.items()
        )

    def take(self, worker: int, step: int, slices: Sequence[int]) -> range:
        """Take what a batch worker has made of a step. Return the steps that are complete now."""
        expected = slices and all(
            self._owner.get(seed_slice) == worker and self._next[seed_slice] == step for seed_slice in slices
        )
        if not expected or len(set(slices)) < len(slices) or step >= self.limit:
            raise MessageError(
                f"batch worker {worker} sent step {step} of slices {list(slices)[:4]} out of order"
            )
        for seed_slice in slices:
            self._next[seed_slice] = step + 1
        before, self._complete = self._complete, min(self._next.values())
        return range(before, self._complete)

    def use(self, step: int) -> None:
        """Note that all compute workers have used a step, and all before it."""
        self._used = max(self._used, step + 1)

    def lose(self, worker: int) -> dict[int, SeedSlices]:
        """Deal the seed slices of a dead batch worker to others. Return what each of them gets."""
        self.alive.discard(worker)
        lost = sorted(seed_slice for seed_slice, owner in self._owner.items() if owner == worker)
        load = dict.fromkeys(sorted(self.alive), 0)
        for owner in self._owner.values():
            if owner in load:
                load[owner] += 1
        moved: dict[int, int] = {}
        for seed_slice in lost if load else []:
            least = min(load, key=lambda other: load[other])
            moved[seed_slice], load[least] = least, load[least] + 1
        self._owner.update(moved)
        return self._slices(
            {seed_slice: owner for seed_slice, owner in moved.items() if self._next[seed_slice] < self._steps}
        )

    def _slices(self, owners: Mapping[int, int]) -> dict[int, SeedSlices]:
        found: dict[int, SeedSlices] = {}
        for seed_slice, owner in owners.items():
            found.setdefault(owner, {})[seed_slice] = self._next[seed_slice]
        return found
