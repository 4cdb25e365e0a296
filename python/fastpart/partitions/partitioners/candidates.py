"""The candidates that :func:`fastpart.partition` chooses from."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ...core.options import run_options
from ...errors import CapacityWarning, ParameterError
from ...graphs.graph import Graph
from ...machines.partitioning import Place, sample_for
from ..partition import Partition
from . import builtin
from .builtin import ALGORITHMS, PARTITIONERS
from .variants import VARIANTS, items_of, needs_splits

VOLUME_BALANCE = 2.0
"""The bound on the volumes of vertex partitions. It costs 2.8 % of the cut on average, tighter ones more than 3 %."""

LEAST_VOLUME_BALANCE = 1.03
"""The least bound on the volumes of the vertices that an edge partition is made of. With less there is no choice."""


@dataclass(frozen=True)
class Candidate:
    """An algorithm with its parameters."""

    label: str
    make: Callable[..., Partition]
    """Called with ``out=`` if the parts of the records go to a file."""
    in_rounds: bool = False
    """Whether it takes ``time_limit=``."""


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
        limits = run_options(**self.options)
        plans = _core.multilevel_plans(
            self.graph._source, self.k, self.graph.directedness == "symmetric", self.volume_balance, limits
        )
        fitting = [plan for plan in plans if plan.memory <= (limits.memory_limit or plan.memory)]
        return float((fitting or plans)[-1].seconds)

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
        sigma = self._named("sigma", of="edges", refine=True)
        group = [hep, Candidate("edges_of", partial(self._edges_of, effort="quick"))]
        if self.effort == "best":  # fewer cut edges are fewer replicas on most graphs, not on all
            best = Candidate("edges_of:effort=best", partial(self._edges_of, effort="best"), in_rounds=True)
            group = [*self._all("hep", "sigma"), sigma, *group, best]  # refining never makes replicas
        return [group, [hep], [sigma], [self._named("hdrf")]]

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
            vertices = self._multilevel(**bounds, **given)
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
