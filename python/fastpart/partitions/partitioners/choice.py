"""The choice among several partitions of one graph."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from ...core.outputs import folder_beside
from ...errors import CapacityError, CapacityWarning, MemoryBudgetError, warn
from ..partition import Partition, VertexPartition
from ..results import Evaluation
from .candidates import Candidate, Request
from .common import cap_of
from .type_bounds import training_of

BALANCE_ON_RATIO = 1.05
"""The default of ``balance_on_ratio`` of all algorithms."""

_MEASURES = {"cut": "cut_ratio", "halo": "halo_rf", "replication": "rf"}
"""The measure that each objective compares."""

_WHERE = {
    "memory": ", all in memory",
    "one_level": ", a level in files",
    "two_levels": ", two levels in files",
}
"""Meanings of the paths of the multilevel partitioner."""

_BEFORE_ROUNDS = 0.5
"""Share of a time limit after which no algorithm begins but the last, whose rounds take the rest."""


def choose(request: Request, time_limit: float | None, target: Path | None) -> Partition:
    """Return the best partition that memory and time allow. ``chosen`` in its parameters says which, and why."""
    choice = Choice(request, time_limit)
    groups, reason = request.groups(), ""
    if request.effort == "fast":
        groups = groups[1:]
    elif time_limit is not None and (seconds := request.seconds()) > time_limit:
        reason = f"multilevel should take {seconds:.3g} s, longer than the time limit"
        groups = groups[1:]
    with folder_beside(target) if target else nullcontext() as folder:
        for index, group in enumerate(groups):
            choice.run(group, folder)
            if choice.best is not None:
                reason = f"{groups[0][-1].label} exceeds the memory limit" if index else reason
                break
        best = choice.result(reason)
        if choice.file is not None and target is not None:
            os.replace(choice.file, target)
    if reason:
        warn(f'effort: {choice.label} instead of "{request.effort}", because {reason}', UserWarning)
    choice.warn_of_volumes()
    return best


class Choice:
    """The best partition so far, and what was found on the way."""

    def __init__(self, request: Request, time_limit: float | None) -> None:
        self.request, self.time_limit = request, time_limit
        self.begin = time.monotonic()
        self.best: Partition | None = None
        self.file: Path | None = None
        self.label = ""
        self._score = float("inf")
        self._warnings: list[warnings.WarningMessage] = []
        self._compared: dict[str, float] = {}
        self._left_out: dict[str, str] = {}
        self._refusal: Exception | None = None

    def run(self, group: Sequence[Candidate], folder: Path | None) -> None:
        """Run the candidates of a group. The last of equally good ones wins."""
        for index, candidate in enumerate(group):
            spent = time.monotonic() - self.begin
            last = index == len(group) - 1
            if self.time_limit is not None and spent > _BEFORE_ROUNDS * self.time_limit and not last:
                self._left_out[candidate.label] = "the time limit"
                continue
            given: dict[str, Any] = {} if folder is None else {"out": folder / f"{candidate.label}.npy"}
            if candidate.in_rounds and self.time_limit is not None:
                given["time_limit"] = max(self.time_limit - spent, 0.0)
            self._take(candidate, given, len(group) == 1)

    def result(self, reason: str) -> Partition:
        """Return the best partition, with its warnings issued and the choice in its parameters."""
        if self.best is None:
            # The last one tried needs the least where graphs are large.
            raise self._refusal or CapacityError("partition: no algorithm keeps the cap")
        for each in self._warnings:
            warn(str(each.message), each.category)
        chosen = {"algorithm": self.label, "effort": self.request.effort, "because": reason or self._reason()}
        more = {"compared": self._compared, "left_out": self._left_out}
        self.best.parameters["chosen"] = chosen | {name: found for name, found in more.items() if found}
        return self.best

    def _reason(self) -> str:
        if self._compared:
            return f"its {self._measure} is the lowest of {len(self._compared)}"
        path = self.best.parameters.get("path") if self.best else None
        return f'it is what effort="{self.request.effort}" takes{_WHERE.get(str(path), "")}'

    @property
    def _measure(self) -> str:
        weighted = self.request.objective == "cut" and self.request.graph._weights
        return "weighted_cut_ratio" if weighted else _MEASURES[self.request.objective]

    def _take(self, candidate: Candidate, given: dict[str, Any], alone: bool) -> None:
        """Run a candidate, and keep its partition if none was better."""
        try:
            partition, issued = (candidate.make(**given), []) if alone else _quietly(candidate, given)
        except (MemoryBudgetError, CapacityError) as error:
            if alone and isinstance(error, CapacityError):
                raise
            self._left_out[candidate.label] = str(error)
            self._refusal = error
            return
        cap = cap_of(self.request.balance, len(partition), self.request.k)
        if not alone and partition.loads.max(initial=0) > cap:
            self._left_out[candidate.label] = f"a part has more than {cap} {partition._items}"
            return
        if not alone and (crowded := self._crowded(partition)):
            self._left_out[candidate.label] = f"a part has too many training vertices of {crowded!r}"
            return
        score = self._score
        if not alone:
            evaluation = partition.evaluate(**self.request.options)
            if heavy := self._heavy(partition, evaluation):
                self._left_out[candidate.label] = heavy
                return
            score = getattr(evaluation, self._measure)
            self._compared[candidate.label] = score
        if self.best is None or score <= self._score:
            self.best, self.label, self._score, self._warnings = partition, candidate.label, score, issued
            if self.file is not None:
                self.file.unlink()
            self.file = given.get("out")

    def _heavy(self, partition: Partition, evaluation: Evaluation) -> str | None:
        """Return what is wrong with the volumes, if the algorithm does not bound them."""
        ratio = self.request.volume_balance
        if ratio is None or not isinstance(partition, VertexPartition) or partition.volume_cap is not None:
            return None
        volumes = (evaluation.parts["volume"] + evaluation.parts["vertices"]).to_numpy()
        cap = cap_of(ratio, int(volumes.sum()), self.request.k)
        return f"a part has a volume above {cap}" if volumes.max(initial=0) > cap else None

    def warn_of_volumes(self) -> None:
        """Warn if the best partition breaks the bound on volumes, and the algorithm does not know it."""
        best, request = self.best, self.request
        ratio = request.volume_balance
        if ratio is None or not isinstance(best, VertexPartition) or best.volume_cap is not None:
            return
        try:
            degrees = request.graph.degrees(**request.options)
        except MemoryBudgetError:  # the partition is more important
            return
        volumes = np.bincount(best.assignment, degrees, minlength=request.k) + best.loads
        found = volumes.max(initial=0) * request.k / max(volumes.sum(), 1)
        if found > ratio:
            warn(
                f"volume_balance: a part has {found:.3g} times its share of the volume, more than {ratio:g}, because "
                f"{self.label} does not bound volumes. A higher memory_limit or time_limit leads to multilevel, which "
                "does",
                CapacityWarning,
            )

    def _crowded(self, partition: Partition) -> str | None:
        """Return the type of whose training vertices some part has too many, if the algorithm does not bound them."""
        k, names = self.request.k, partition.bounded_types or ()
        for name, ids in self.request.trained.items():
            loads = np.bincount(partition.assignment[ids], minlength=k)
            if training_of(name) not in names and loads.max() > cap_of(BALANCE_ON_RATIO, len(ids), k):
                return name
        return None


def _quietly(candidate: Candidate, given: dict[str, Any]) -> tuple[Partition, list[warnings.WarningMessage]]:
    """Run a candidate, and hold its warnings back. Only those of the best one are issued."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        return candidate.make(**given), issued
