"""The candidates that :func:`fastpart.partition` has for one graph, and the choice among their partitions."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ...core.options import run_options
from ...core.outputs import folder_beside
from ...errors import CapacityError, CapacityWarning, MemoryBudgetError, ParameterError, warn
from ...graphs.graph import Graph
from ...machines.partitioning import Place, sample_for
from ..partition import Partition, VertexPartition
from ..results import Evaluation
from . import builtin
from .builtin import ALGORITHMS, PARTITIONERS, SUCCESSORS
from .common import WouldRun, cap_of, training_of
from .speed import slowness

VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    name: tuple(
        dict([variant]) for variant in [*([("of", "edges")] if len(known.of) > 1 else []), *known.variants]
    )
    for name, known in ALGORITHMS.items()
}
"""Parameters that select another variant of a partitioner."""


def needs_splits(name: str) -> bool:
    """Return whether the partitioner cannot run without the training vertices."""
    return any(field.kind == "splits" for field in ALGORITHMS[name].fields)


def items_of(name: str, parameters: Mapping[str, Any]) -> str:
    """Return whether the partitioner partitions "vertices" or "edges" when called with these parameters."""
    known = (ALGORITHMS | SUCCESSORS).get(name)
    of = known.of if known else ["vertices", "edges"]
    return str(parameters.get("of", of[0])) if len(of) > 1 else of[0]


VOLUME_BALANCE = 2.0
"""The bound on the volumes of vertex partitions. It costs 2.8 % of the cut on average, tighter ones more than 3 %."""

LEAST_VOLUME_BALANCE = 1.03
"""The least bound on the volumes of the vertices that an edge partition is made of. With less there is no choice."""


LARGER_TAU = 100
"""Mean degrees of a hub in a second run of ``hep``, which streams fewer records than the first."""

FEW_PARTS = 16
"""Parts up to which the default ``tau`` of ``hep`` often makes fewer replicas than the larger one."""

SKEWED_DEGREES = 4.0
"""Mean square of the degrees, in squares of their mean, above which ``hep`` makes fewer replicas than ``edges_of``."""


@dataclass(frozen=True)
class Candidate:
    """An algorithm with its parameters."""

    label: str
    make: Callable[..., Partition]
    """Called with ``out=`` if the parts of the records go to a file."""
    in_rounds: bool = False
    """Whether it takes ``time_limit=``."""
    futile: str = ""
    """Why it will not be the best one, if something that takes far less time tells."""


@dataclass(frozen=True)
class Request:
    """The checked arguments of a call."""

    graph: Graph
    k: int
    of: str
    objective: str
    effort: str
    balance: float
    volume_balance: float | None
    machines: Sequence[int] | None
    shares: Mapping[str, Any]
    """``sizes``, ``fixed`` and ``connected``, as far as they are given. Only the multilevel partitioner knows them."""
    checkpoints: Any
    seed: int
    trained: Mapping[str, npt.NDArray[np.int64]]
    """The training vertices of each type that a graph directory has, which are bounded."""
    options: Mapping[str, Any]

    def groups(self) -> list[list[Candidate]]:
        """Return the candidates: those that the effort asks for, then what takes less time and memory.

        The best of a group is the result. If none of it fits into memory, the next group is tried.
        """
        return self._of_vertices() if self.of == "vertices" else self._of_edges()

    def on(self, place: Place) -> Partition:
        """Return the partition that a cluster makes."""
        if (
            self.of == "edges"
            or self.effort == "best"
            or self.machines is not None
            or "connected" in self.shares
        ):
            raise ParameterError(
                "cluster: a cluster partitions vertices by multilevel, with effort fast or default. Edge partitions, "
                "streams, effort best, machines and connected are for one machine"
            )
        sample = sample_for(self.graph)
        given = {**self._shared, **self.shares, "effort": self.effort, "path": "two_levels", "sample": sample}
        partition = builtin.on_machines("multilevel", place, self.graph, **given)
        partition.parameters["chosen"] = {
            "algorithm": partition.algorithm,
            "because": f"{place.engine.workers} workers of a cluster make it",
        }
        return partition

    def seconds(self) -> float:
        """Return how long the multilevel partitioner should take, with all files in the page cache."""
        graph, limits = self.graph, run_options(**self.options)
        symmetric, degrees = graph.directedness == "symmetric", graph.degrees(**self.options)
        plans = _core.multilevel_plans(graph._source, self.k, symmetric, self.volume_balance, degrees, limits)
        fitting = [plan for plan in plans if plan.memory <= (limits.memory_limit or plan.memory)]
        return float((fitting or plans)[-1].seconds) * slowness()

    def _of_vertices(self) -> list[list[Candidate]]:
        given = {"objective": self.objective, "machines": self.machines, "checkpoints": self.checkpoints}
        given |= self.shares
        effort, others = {}, []
        if self.effort == "best":
            effort = {"effort": "best"}
            others = [] if self._is_alone else self._all("multilevel")
        multilevel = Candidate(
            "multilevel", partial(self._multilevel, **given | effort), self.effort == "best"
        )
        fast = partial(self._multilevel, **given | {"effort": "fast"})
        label = "multilevel:effort=fast"
        if self._is_alone:
            return [[multilevel], [Candidate(label, fast)]]
        streams = [[self._named("spring")]]
        if self.graph._weights is None:  # where levels would lie in files, a stream takes less time
            streams.insert(0, [self._named("refennel", passes=2)])
            fast = partial(fast, path="memory")
        return [[*others, multilevel], [Candidate(label, fast)], *streams]

    @property
    def _is_alone(self) -> bool:
        """Whether only the multilevel partitioner knows what is asked for."""
        return self.machines is not None or bool(self.shares)

    def _of_edges(self) -> list[list[Candidate]]:
        hep = self._named("hep", refine=True)
        larger = self._named("hep", tau=LARGER_TAU, refine=True)
        sigma = self._named("sigma", of="edges", refine=True)
        quick = Candidate("edges_of", partial(self._edges_of, effort="quick"))
        if self.effort == "best":  # fewer cut edges are fewer replicas on most graphs, not on all
            best = Candidate("edges_of:effort=best", partial(self._edges_of, effort="best"), in_rounds=True)
            # Refining never makes replicas.
            group = [*self._all("hep", "sigma"), sigma, hep, larger, quick, best]
        elif self.effort == "default" and (futile := self._against_edges_of()):
            group = [*([hep] if self.k <= FEW_PARTS else []), larger, replace(quick, futile=futile)]
        else:
            group = [larger, quick]
        return [group, [hep], [sigma], [self._named("hdrf")]]

    def _against_edges_of(self) -> str:
        """Return why ``hep`` makes fewer replicas than parts of vertices, if the degrees tell."""
        try:
            degrees = self.graph.degrees(**self.options).astype(np.float64)
        except MemoryBudgetError:  # each candidate states its own need
            return ""
        skew = float(np.square(degrees).mean() / degrees.mean() ** 2) if degrees.any() else 0.0
        if skew <= SKEWED_DEGREES:
            return ""
        return f"degrees are skewed: their mean square is {skew:.3g} times the square of their mean"

    def _multilevel(self, **given: Any) -> Partition:
        return builtin.multilevel(self.graph, **self._shared | given)

    def _edges_of(self, out: Any = None, **given: Any) -> Partition:
        """Partition the vertices so that volumes are even, then the edges."""
        # Records within a part then fit there.
        volume = max(self.balance, LEAST_VOLUME_BALANCE)
        bounds = {"balance": float(self.k), "volume_balance": volume, "balance_on": []}
        given["checkpoints"] = self.checkpoints
        with warnings.catch_warnings():  # nobody asked for this bound on the volumes
            warnings.simplefilter("ignore", CapacityWarning)
            try:
                vertices = self._multilevel(**bounds, **given)
            except WouldRun:  # the memory of the second step depends on the sizes alone
                vertices = VertexPartition(np.zeros(self.graph.num_vertices, np.int32), k=self.k)
        return builtin.edges_of(self.graph, vertices, out=out, **self._shared)

    @property
    def _shared(self) -> dict[str, Any]:
        bounds = {"balance": self.balance}
        if self.volume_balance is not None:
            bounds["volume_balance"] = self.volume_balance
        return {"k": self.k, **bounds, "seed": self.seed, **self.options}

    def _all(self, *but: str) -> list[Candidate]:
        """Return all other partitioners and their variants, as a comparison lists them."""
        return [
            self._named(name, **given)
            for name, known in ALGORITHMS.items()
            for given in ({}, *VARIANTS[name])
            if items_of(name, given) == self.of
            and name not in but
            and not needs_splits(name)
            and (known.reads_weights or self.of == "edges" or not self.graph._weights)
        ]

    def _named(self, name: str, **given: Any) -> Candidate:
        known = {field.name for field in ALGORITHMS[name].fields} | {"k", *self.options}
        shared = {key: value for key, value in self._shared.items() if key in known}
        label = ":".join([name, *(f"{key}={value}" for key, value in given.items() if value is not None)])
        return Candidate(label, partial(PARTITIONERS[name], self.graph, **shared | given))


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
            if choice.best is not None or choice.begun:
                reason = f"{groups[0][-1].label} exceeds the memory limit" if index else reason
                break
        if choice.begun:
            raise choice.rehearsal(reason)
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
        self.begun: list[str] = []
        """Candidates that would run, in a rehearsal."""
        self._score = float("inf")
        self._warnings: list[warnings.WarningMessage] = []
        self._compared: dict[str, float] = {}
        self._left_out: dict[str, str] = {}
        self._refusal: Exception | None = None

    def run(self, group: Sequence[Candidate], folder: Path | None) -> None:
        """Run the candidates of a group. The last of equally good ones wins."""
        self._left_out |= {candidate.label: candidate.futile for candidate in group if candidate.futile}
        group = [candidate for candidate in group if not candidate.futile]
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

    def rehearsal(self, reason: str) -> WouldRun:
        """Return the candidates that would run, and why."""
        effort = f'effort="{self.request.effort}"'
        several = f"{effort} takes the best of them by {self._measure}"
        because = reason or (several if len(self.begun) > 1 else f"it is what {effort} takes")
        return WouldRun(self.begun, because, self._left_out)

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
        except WouldRun:
            self.begun.append(candidate.label)
            return
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
