"""The batch worker: a process that samples and reads features, step by step, as the coordinator says."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from ....core.parsing import json_object
from ....core.system import anonymous_bytes
from ....runtime.reporting import RUN, Reports
from .cache import RowIds
from .graphs import Graph, Graphs
from .groups import Grouping
from .messages import Kind, Link, MessageError
from .rendezvous import Address, Settings, Source, address_of, connect
from .schedule import Progress, Work

RECEIVERS = "receivers.json"
"""Addresses of the receivers of all machines, if there are several."""


def work(reports: Reports, file: Path, worker: int) -> None:
    """Make batches for all compute machines until the training is over."""
    settings = Settings.load(file)
    source = Source(settings)
    streams = []
    who = {"batch worker": worker, "run": os.environ[RUN], "pid": os.getpid()}
    for address in _addresses(file.parent):
        link, welcome = connect(address, settings, who)
        streams.append(Stream(link, source, worker, welcome["first"], welcome["workers"]))
    reports.ready()
    pool = ThreadPoolExecutor(len(streams))
    for ended in as_completed([pool.submit(stream.run) for stream in streams]):
        ended.result()
    reports.done()


def _addresses(folder: Path) -> list[Address]:
    file = folder / RECEIVERS
    if file.exists():
        found = json_object(file, None, {"receivers": list[tuple[str, int]]})["receivers"]
        return [(address, port) for address, port in found]
    return [address_of(folder)]


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
        self._link, self._source, self._compute_workers = link, source, range(first, first + compute_workers)
        self._graphs = Graphs(source.partition, source.sampling)
        self._rows = source.schedule.seeds.rows
        self._grouping = Grouping(source.num_rows, source.layout.row_bytes, source.indexes(worker))
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
        features = [
            graph.gather(rows, number) if graph else np.empty((0, *shape), dtype)
            for number, (rows, (dtype, shape)) in enumerate(
                zip(group.sent, self._source.layout.types, strict=True)
            )
        ]
        facts = {
            "fetched": self._count_absent(group.sent),
            "bytes": anonymous_bytes(),
            "nanoseconds": [sampled - start, time.perf_counter_ns() - sampled],
        }
        self._link.send(head | group.content | facts, group.arrays(features))

    def _graph(self, work: Work) -> Graph:
        parts, graph = self._graph_of.pop(work.seed_slice, ((), None))
        if graph is None or parts != work.parts:
            graph = self._graphs.of(work.parts, graph)
        self._graph_of[work.seed_slice] = work.parts, graph
        return graph

    def _count_absent(self, rows: Sequence[RowIds]) -> int:
        """Return how many rows of features, which ascend in each type, are of parts of other batch workers."""
        if self._source.settings.order == "parts":
            return 0
        absent, of_types = 0, zip(rows, self._source.starts, self._source.layout.row_bytes, strict=True)
        for of_type, starts, row_bytes in of_types:
            counts = np.diff(np.searchsorted(of_type, starts)) * (row_bytes > 0)
            absent += int(counts.sum() - counts[list(self._own)].sum())
        return absent
