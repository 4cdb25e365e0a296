"""The batches that a batch worker makes for one compute machine, step by step, as its coordinator says."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ...core.processes import anonymous_bytes
from .cache import RowIds, cache_index
from .coordinator import Progress
from .graphs import Graph, Graphs
from .grouping import Grouping
from .messages import Kind, Link, MessageError
from .schedule import Work
from .settings import Source


class Stream:
    """The batches for a compute machine.

    Parameters
    ----------
    link : Link
        The connection to the compute machine.
    source : Source
        The partition directory.
    worker : int
        This batch worker.
    first, compute_workers : int
        The first compute worker there, and their number.
    """

    def __init__(self, link: Link, source: Source, worker: int, first: int, compute_workers: int) -> None:
        settings = source.settings
        self._link, self._source, self._compute_workers = link, source, range(first, first + compute_workers)
        self._graphs = Graphs(source.partition, source.sampling)
        self._rows = source.schedule.seeds.rows
        cached = source.most_accessed() if settings.policy == "static" else np.empty(0, np.uint32)
        index = cache_index(
            settings.policy, source.capacity, cached, worker, settings.batch_workers, source.num_rows
        )
        self._grouping = Grouping(source.num_rows, source.row_bytes, index)
        self._progress = Progress()
        self._own: set[int] = set()
        self._graph_of: dict[int, tuple[tuple[int, ...] | None, Graph]] = {}
        self._number = -1

    def run(self) -> None:
        """Make batches until the coordinator ends it."""
        while True:
            work = None if self._link.has_input() else self._progress.pop()
            if work is not None:
                self._make(*work)
                continue
            message = self._link.receive()
            if message.kind == Kind.END:
                return
            self._follow(message.kind, message.content)

    def _follow(self, kind: str, content: Mapping[str, Any]) -> None:
        if kind == Kind.EPOCH:
            self._number = content["epoch"]
            self._epoch = self._source.schedule.epoch(self._number)
            self._progress.begin(self._epoch.steps)
            self._own.clear()
            self._graph_of.clear()
        if kind in (Kind.EPOCH, Kind.SLICES):
            slices = dict(content["slices"])
            self._progress.add(slices)
            self._own |= slices.keys()
        elif kind != Kind.LIMIT:
            raise MessageError(f"the coordinator sent a message of kind {kind!r}")
        self._progress.limit = content["limit"]

    def _make(self, step: int, slices: Collection[int]) -> None:
        """Make a step of some seed slices, and send it: a message for every set of parts that it is sampled over."""
        works = self._epoch.work(step, slices, self._source.settings.compute_workers)
        works = [work for work in works if work.compute_worker in self._compute_workers]
        groups = [
            list(those) for _, those in groupby(works, key=lambda work: (work.seed_slice, work.parts))
        ] or [[]]
        head = {"epoch": self._number, "step": step, "slices": list(slices)}
        for number, those in enumerate(groups):
            self._send(head | {"last": number == len(groups) - 1}, those)

    def _send(self, head: dict[str, Any], works: Sequence[Work]) -> None:
        start = time.perf_counter_ns()
        graph = self._graph(works[0]) if works else None
        samples = [
            graph.sample(self._rows[work.positions], head["epoch"], head["step"]) for work in works if graph
        ]
        group = self._grouping.group(samples, [work.compute_worker for work in works])
        sampled = time.perf_counter_ns()
        features = (
            graph.gather(group.sent) if graph else np.empty((0, *self._source.shape), self._source.dtype)
        )
        facts = {
            "fetched": self._count_absent(group.sent),
            "bytes": anonymous_bytes(),
            "nanoseconds": [sampled - start, time.perf_counter_ns() - sampled],
        }
        self._link.send(head | group.content | facts, [features, *group.arrays])

    def _graph(self, work: Work) -> Graph:
        parts, graph = self._graph_of.pop(work.seed_slice, ((), None))
        if graph is None or parts != work.parts:
            graph = self._graphs.of(work.parts, graph)
        self._graph_of[work.seed_slice] = work.parts, graph
        return graph

    def _count_absent(self, rows: RowIds) -> int:
        """Return how many of the rows, which ascend, are of parts of other batch workers."""
        if self._source.settings.order == "parts":
            return 0
        counts = np.diff(np.searchsorted(rows, self._source.topology.starts))
        return int(counts.sum() - counts[list(self._own)].sum())
