"""The receiver of a compute machine: a process between batch workers and compute workers.

It is the coordinator of the batch workers, too. It takes their groups, completes them from its cache, and puts them
into shared memory. Compute workers get a step when all of it is there, and say when they have copied it.
"""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ... import _core
from ...errors import TrainingError
from ...runtime.reporting import RUN, Reports
from .buffers import Buffer, BufferPool
from .cache import Cache
from .coordinator import Coordinator
from .grouping import INTO
from .messages import Array, Kind, Link, MessageError, Spec
from .rendezvous import Strangers, greet, listen
from .settings import Settings, Source
from .wire import ConnectionClosedError, ConnectionSilentError

COUNTS = ("remote_rows", "remote_bytes", "ungrouped_bytes", "cached_rows", "fetched_rows")
MEMORY = "batch_worker_bytes"
MAKING = ("sampling", "fetching")
"""Tasks of batch workers whose time is measured."""

_MOST_STRANGERS = 32
"""Connections that may be silent, beside those of the run."""

_PAUSE_SECONDS = 0.05
"""Time after a connection that could not be accepted."""

_LEFT_SECONDS = 10.0
"""Time for the supervisor to notice that all batch workers are dead."""


@dataclass(frozen=True)
class ReceivedGroup:
    """A group from a batch worker: its seed slices, the content of its message, and the buffer that it is in."""

    slices: list[int]
    content: Mapping[str, Any]
    buffer: Buffer


class Receiver:
    """The receiver. All of its threads share its state under one lock.

    Parameters
    ----------
    source : Source
        The partition directory.
    run : str
        Name of the run.
    """

    def __init__(self, source: Source, run: str) -> None:
        settings = source.settings
        self._settings, self._schedule = settings, source.schedule
        self._pool = BufferPool(run, source.dtype, source.shape)
        source.refuse_large_cache()
        self._cache = Cache(np.empty((source.capacity, *source.shape), source.dtype))
        self._changed = threading.Condition()
        self._strangers = Strangers(_MOST_STRANGERS + settings.local_workers + settings.batch_workers)
        self._coordinator = Coordinator((), settings.ahead)
        self._came: set[int] = set()
        self._batch_links: dict[int, Link] = {}
        self._compute_links: dict[int, Link] = {}
        self._asked: Counter[int] = Counter()
        self._groups: defaultdict[int, list[ReceivedGroup]] = defaultdict(list)
        self._used: Counter[int] = Counter()
        self._counts: Counter[str] = Counter()
        self._number, self._ended = -1, 0
        self._error: BaseException | None = None

    def serve(self, server: socket.socket) -> None:
        """Serve until all compute workers have left."""
        threading.Thread(target=self._accept, args=(server,), daemon=True).start()
        with self._changed:
            while self._ended < self._settings.local_workers and self._error is None:
                self._changed.wait()
            if self._error is not None:
                for link in (*self._compute_links.values(), *self._batch_links.values()):
                    link.close()
                raise self._error
            for link in self._batch_links.values():
                with suppress(TrainingError):  # the work is done
                    link.send({"kind": Kind.END})
            self._pool.close()

    def _accept(self, server: socket.socket) -> None:
        """Accept connections until the socket is closed in the end."""
        while True:
            try:
                line, _ = server.accept()
            except OSError as error:
                if error.errno in (errno.EBADF, errno.EINVAL):
                    return
                time.sleep(_PAUSE_SECONDS)  # too many descriptors, or a connection that is gone already
                continue
            self._strangers.admit(line)
            try:
                threading.Thread(target=self._welcome, args=(line,), daemon=True).start()
            except RuntimeError:  # too many threads
                self._strangers.leave(line)
                line.close()

    def _welcome(self, line: socket.socket) -> None:
        try:
            greeted = greet(line, self._settings)
        except OSError:  # it is gone already
            line.close()
            return
        finally:
            self._strangers.leave(line)
        if greeted is None:
            return
        link, message = greeted
        try:
            if "compute worker" in message.content:
                self._serve_compute(link, int(message.content["compute worker"]))
            else:
                self._serve_batch(link, int(message.content["batch worker"]))
        except BaseException as error:  # after any error, all have to end
            with self._changed:
                self._error = self._error or error
                self._changed.notify_all()
        finally:
            link.close()

    # Batch workers.

    def _serve_batch(self, link: Link, worker: int) -> None:
        settings = self._settings
        link.send({"kind": Kind.WELCOME, "first": settings.first, "workers": settings.local_workers})
        with self._changed:
            self._batch_links[worker] = link
            self._came.add(worker)
            self._coordinator.alive.add(worker)
            self._begin()
        groups: list[ReceivedGroup] = []
        try:
            while True:
                groups.append(self._receive(link))
                if groups[-1].content["last"]:
                    self._take(worker, groups)
                    groups = []
        except ConnectionClosedError:
            self._lose(worker)
        finally:
            for each in groups:  # the step is made again by others
                self._pool.take_back(each.buffer)

    def _receive(self, link: Link) -> ReceivedGroup:
        """Return the next group of a batch worker, with all rows of features."""
        buffers: list[Buffer] = []

        def destination(content: Mapping[str, Any], specs: Sequence[Spec]) -> list[Array]:
            buffers.append(self._pool.take(content, specs))
            return buffers[0].arrays

        try:
            message = link.receive(_core.memory_budget(), destination)
            if not buffers:
                raise MessageError("a group has no arrays")
            features, rows, *cached = message.arrays[: INTO + 1]
            self._cache.fill(buffers[0].x, rows, len(features), *cached)
        except BaseException:
            for buffer in buffers:
                self._pool.take_back(buffer)
            raise
        self._count(message.content, len(features), len(rows), message.num_bytes)
        return ReceivedGroup(message.content["slices"], message.content, buffers[0])

    def _count(self, content: Mapping[str, Any], sent: int, rows: int, num_bytes: int) -> None:
        with self._changed:
            numbers = (sent, num_bytes, content["ungrouped"], rows - sent, content["fetched"])
            self._counts.update(dict(zip(COUNTS, numbers, strict=True)))
            self._counts.update(dict(zip(MAKING, content["nanoseconds"], strict=True)))
            self._counts[MEMORY] = max(self._counts[MEMORY], content["bytes"])

    def _take(self, worker: int, groups: Sequence[ReceivedGroup]) -> None:
        content = groups[-1].content
        with self._changed:
            if content["epoch"] != self._number:
                raise MessageError(f"batch worker {worker} sent a batch of another epoch")
            complete = self._coordinator.take(worker, content["step"], content["slices"])
            self._groups[content["step"]] += groups
            for step in complete:
                self._deliver(step)

    def _lose(self, worker: int) -> None:
        """Let others go on with what a dead batch worker had to do."""
        with self._changed:
            del self._batch_links[worker]
            moved = self._coordinator.lose(worker)
            for other, slices in moved.items():
                self._tell(self._batch_links[other], self._order(Kind.SLICES, slices))
            over = self._ended == self._settings.local_workers
            if not self._coordinator.alive and not over and not self._changed.wait(_LEFT_SECONDS):
                raise TrainingError("all batch workers are gone")

    def _order(self, kind: str, slices: dict[int, int]) -> dict[str, Any]:
        limit = self._coordinator.limit
        return {"kind": kind, "epoch": self._number, "slices": sorted(slices.items()), "limit": limit}

    def _tell(self, link: Link, content: dict[str, Any]) -> None:
        try:
            link.send(content)
        except ConnectionClosedError:  # the thread that receives from it notices, too
            pass
        except ConnectionSilentError as error:
            seconds = self._settings.timeout
            raise TrainingError(f"{self._name_of(link)} hangs: {error} for {seconds:g} s") from error

    def _name_of(self, link: Link) -> str:
        kinds = {"batch worker": self._batch_links, "compute worker": self._compute_links}
        return next(
            f"{kind} {n}" for kind, links in kinds.items() for n, each in links.items() if each is link
        )

    # Compute workers.

    def _serve_compute(self, link: Link, rank: int) -> None:
        link.send({"kind": Kind.WELCOME})
        with self._changed:
            self._compute_links[rank] = link
        try:
            while True:
                message = link.receive()
                with self._changed:
                    if message.kind == Kind.EPOCH:
                        self._asked[message.content["epoch"]] += 1
                        self._begin()
                    else:
                        self._use(message.content["step"])
        except ConnectionClosedError:
            with self._changed:
                self._ended += 1
                self._changed.notify_all()

    def _begin(self) -> None:
        """Begin the epoch that all compute workers have asked for, if all batch workers were here once."""
        number = max(self._asked, default=-1)
        everyone, workers = (
            self._asked[number] == self._settings.local_workers,
            self._settings.batch_workers,
        )
        if number == self._number or not everyone or len(self._came) < workers:
            return
        self._number, self._epoch = number, self._schedule.epoch(number)
        self._used.clear()
        owners = self._epoch.owners(self._coordinator.alive)
        orders = self._coordinator.begin(owners, self._epoch.steps)
        for link in self._compute_links.values():
            self._tell(link, {"kind": Kind.EPOCH, "steps": self._epoch.steps})
        for worker, slices in orders.items():
            self._tell(self._batch_links[worker], self._order(Kind.EPOCH, slices))

    def _deliver(self, step: int) -> None:
        # Groups are in the order of their seed slices, so that sums are the same in every run.
        groups = sorted(self._groups[step], key=lambda each: each.slices)
        content = {
            "kind": Kind.STEP,
            "step": step,
            "count": self._epoch.count(step),
            "pieces": [
                [each.buffer.file.name, each.buffer.extents, each.content["graphs"]] for each in groups
            ],
        }
        first, *others = sorted(self._compute_links)
        self._tell(self._compute_links[first], {**content, "counts": self._counts})
        for rank in others:
            self._tell(self._compute_links[rank], {**content, "counts": {}})
        self._counts.clear()

    def _use(self, step: int) -> None:
        self._used[step] += 1
        if self._used[step] == self._settings.local_workers:
            for each in self._groups.pop(step):
                self._pool.take_back(each.buffer)
            self._coordinator.use(step)
            for link in self._batch_links.values():
                self._tell(link, {"kind": Kind.LIMIT, "limit": self._coordinator.limit})


def work(reports: Reports, file: Path, address: str) -> None:
    """Receive until the training is over."""
    settings = Settings.load(file)
    receiver = Receiver(Source(settings), os.environ[RUN])
    with listen(file.parent, address) as server:
        reports.ready()
        receiver.serve(server)
    reports.done()
