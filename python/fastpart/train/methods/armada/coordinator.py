"""Which batch worker samples which seed slices of an epoch, and how far each has come.

A *seed slice* is a set of training vertices: those of one part, or those of all parts that a batch worker has in memory
one after the other. One batch worker samples it for every step, in the order of the steps. When a batch worker dies,
others continue its seed slices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .messages import MessageError

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
