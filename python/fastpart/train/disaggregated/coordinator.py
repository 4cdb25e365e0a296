"""Which batch worker makes which lanes of an epoch, and what has come of them.

A *lane* is what a batch worker makes for every step, in the order of the steps: the training vertices of a part, or of
all parts of a schedule. When a batch worker dies, others continue its lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from .messages import Damaged

Lanes = dict[int, int]
"""Lanes of a batch worker, each with the first step to make."""


class Progress:
    """What a batch worker has to make. It makes the least step first, for all lanes that wait for it."""

    def __init__(self) -> None:
        self._next: Lanes = {}
        self._steps = self.limit = 0

    def begin(self, steps: int) -> None:
        """Begin an epoch."""
        self._next, self._steps, self.limit = {}, steps, 0

    def add(self, lanes: Lanes) -> None:
        """Take over lanes."""
        self._next |= lanes

    def pop(self) -> tuple[int, list[int]] | None:
        """Return the next step and its lanes. None if it must not be made yet."""
        step = min(self._next.values(), default=self._steps)
        if step >= min(self.limit, self._steps):
            return None
        lanes = sorted(lane for lane, its_step in self._next.items() if its_step == step)
        self._next |= dict.fromkeys(lanes, step + 1)
        return step, lanes


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

    def begin(self, owners: Mapping[int, int], steps: int) -> dict[int, Lanes]:
        """Begin an epoch, given the batch worker of each lane. Return the lanes of each batch worker, if any."""
        self._owner, self._next = dict(owners), dict.fromkeys(owners, 0)
        self._steps, self._complete, self._used = steps, 0, 0
        return {worker: {} for worker in self.alive} | self._lanes(self._owner)

    @property
    def limit(self) -> int:
        """The first step that must not be made yet."""
        return min(self._used + self._ahead, self._steps)

    @property
    def over(self) -> bool:
        """Whether no epoch has begun, or all steps of the last one were used."""
        return self._used == self._steps

    def take(self, worker: int, step: int, lanes: Sequence[int]) -> range:
        """Take what a batch worker has made of a step. Return the steps that are complete now."""
        expected = lanes and all(
            self._owner.get(lane) == worker and self._next[lane] == step for lane in lanes
        )
        if not expected or len(set(lanes)) < len(lanes) or step >= self.limit:
            raise Damaged(f"batch worker {worker} sent step {step} of lanes {list(lanes)[:4]} out of turn")
        for lane in lanes:
            self._next[lane] = step + 1
        before, self._complete = self._complete, min(self._next.values())
        return range(before, self._complete)

    def use(self, step: int) -> None:
        """Note that all compute workers have used a step, and all before it."""
        self._used = max(self._used, step + 1)

    def lose(self, worker: int) -> dict[int, Lanes]:
        """Deal the lanes of a dead batch worker to others. Return what each of them gets."""
        self.alive.discard(worker)
        lost = sorted(lane for lane, owner in self._owner.items() if owner == worker)
        load = dict.fromkeys(sorted(self.alive), 0)
        for owner in self._owner.values():
            if owner in load:
                load[owner] += 1
        moved: dict[int, int] = {}
        for lane in lost if load else []:
            least = min(load, key=lambda other: load[other])
            moved[lane], load[least] = least, load[least] + 1
        self._owner.update(moved)
        return self._lanes({lane: owner for lane, owner in moved.items() if self._next[lane] < self._steps})

    def _lanes(self, owners: Mapping[int, int]) -> dict[int, Lanes]:
        found: dict[int, Lanes] = {}
        for lane, owner in owners.items():
            found.setdefault(owner, {})[lane] = self._next[lane]
        return found
