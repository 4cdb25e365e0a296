"""The receiver of a compute machine: a process between batch workers and compute workers.

It also is the coordinator of the batch workers. It takes their groups, completes them from its cache, and puts them
into shared memory. Compute workers get a step when all of it is there, and say when they have copied it.
"""

from __future__ import annotations

import asyncio
import os
import queue
import signal
import socket
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .... import _core
from ....errors import TrainingError
from ....runtime.reporting import RUN, Reports
from .cache import Cache
from .groups import Buffer, BufferPool
from .messages import ConnectionClosedError, ConnectionSilentError, Kind, Link, MessageError, framed
from .rendezvous import Settings, Source, admit, listen
from .schedule import Coordinator

COUNTS = ("remote_rows", "remote_bytes", "ungrouped_bytes", "cached_rows", "fetched_rows")
MEMORY = "batch_worker_bytes"
MAKING = ("sampling", "fetching")
"""Tasks of batch workers whose time is measured."""

_MOST_STRANGERS = 32
"""Connections that may be silent, beside those of the run."""

_LOOK_SECONDS = 0.5
"""Time between two looks for batch workers that hang."""

_END_SECONDS = 5.0
"""Time for the last messages to be sent."""

_LEFT_SECONDS = 10.0
"""Time for the supervisor to notice that all batch workers are dead."""


@dataclass(frozen=True)
class ReceivedGroup:
    """A group from a batch worker: the content of its message, and the buffer that it is in."""

    content: Mapping[str, Any]
    buffer: Buffer


class Peer:
    """A process of the run. Messages to it wait in a queue, so that a process that reads nothing stops nobody.

    Parameters
    ----------
    name : str
        Its name in errors.
    link : Link
        The connection to it.
    failed : callable
        Called with the error if it reads nothing for too long.
    pid : int, optional
        Its process, if that may be killed: if it is on this machine, and hangs.

    Attributes
    ----------
    silent_seconds : float
        For how long it has sent nothing although it has work.
    """

    def __init__(
        self, name: str, link: Link, failed: Callable[[TrainingError], None], pid: int | None = None
    ) -> None:
        self.name, self.link, self.pid = name, link, pid
        self._failed, self._queue = failed, queue.SimpleQueue[bytes | None]()
        self._heard, self.silent_seconds = 0, 0.0
        self._sender = threading.Thread(target=self._send, daemon=True)
        self._sender.start()

    def post(self, content: Mapping[str, Any]) -> None:
        """Send a message soon, as it is now."""
        self._queue.put(framed(content))

    def leave(self, seconds: float = 0) -> None:
        """Send no more, and wait so long for what is under way."""
        self._queue.put(None)
        self._sender.join(seconds)

    def _send(self) -> None:
        try:
            while (message := self._queue.get()) is not None:
                self.link.write(message)
        except ConnectionSilentError as error:
            self._failed(TrainingError(f"{self.name} hangs: {error}"))
        except ConnectionClosedError:  # the thread that receives also notices
            pass

    def look(self, seconds: float, has_work: bool) -> None:
        """Note whether it has sent anything since the last look, some seconds ago.

        Looks are counted, because a clock also runs while this process is stopped.
        """
        silent = has_work and self._heard == self.link.received
        self.silent_seconds = self.silent_seconds + seconds if silent else 0.0
        self._heard = self.link.received

    def kill(self) -> None:
        """Kill the process, once."""
        assert self.pid is not None
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self.pid = None


class Receiver:
    """The receiver. All of its threads share its state under one lock, and send nothing while they hold it.

    Parameters
    ----------
    source : Source
        The partition directory.
    run : str
        Name of the run.
    """

    def __init__(self, source: Source, run: str) -> None:
        settings = source.settings
        self._settings, self._schedule, self._run = settings, source.schedule, run
        self._layout, self._pool = source.layout, BufferPool(run, source.layout)
        source.refuse_large_cache()
        self._caches = [
            Cache(np.empty((capacity, *shape), dtype))
            for capacity, (dtype, shape) in zip(source.capacities, source.layout.types, strict=True)
        ]
        self._changed = threading.Condition()
        self._coordinator = Coordinator((), settings.ahead)
        self._came: set[int] = set()
        self._batch: dict[int, Peer] = {}
        self._compute: dict[int, Peer] = {}
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
                if not self._changed.wait(_LOOK_SECONDS):
                    self._kill_hanging()
            peers = [*self._compute.values(), *self._batch.values()]
        if self._error is not None:
            for peer in peers:
                peer.link.end()
            raise self._error
        for peer in peers:
            peer.post({"kind": Kind.END})
            peer.leave(_END_SECONDS)
        self._pool.close()

    def _accept(self, server: socket.socket) -> None:
        """Serve each process of the run in a thread of its own."""
        settings = self._settings
        most = _MOST_STRANGERS + settings.local_workers + settings.batch_workers

        def welcome(link: Link) -> None:
            threading.Thread(target=self._welcome, args=(link,), daemon=True).start()

        try:
            asyncio.run(admit(server, settings.token, most, welcome))
        except BaseException as error:
            self._fail(error)

    def _welcome(self, link: Link) -> None:
        try:
            link.limit(None, self._settings.timeout)
            who = link.receive().content
            if "compute worker" in who:
                self._serve_compute(link, int(who["compute worker"]))
            else:
                pid = who.get("pid") if who.get("run") == self._run else None
                self._serve_batch(link, int(who["batch worker"]), pid)
        except ConnectionClosedError:  # before it has said who it is
            pass
        except BaseException as error:  # after any error, all have to end
            self._fail(error)
        finally:
            link.close()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    # Batch workers.

    def _serve_batch(self, link: Link, worker: int, pid: int | None) -> None:
        settings, peer = self._settings, Peer(f"batch worker {worker}", link, self._fail, pid)
        peer.post({"kind": Kind.WELCOME, "first": settings.first, "workers": settings.local_workers})
        with self._changed:
            self._batch[worker] = peer
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
            peer.leave()
            for each in groups:  # the step is made again by others
                self._pool.take_back(each.buffer)

    def _receive(self, link: Link) -> ReceivedGroup:
        """Return the next group of a batch worker, with all rows of features."""
        message = link.receive(_core.memory_budget())
        buffer = self._pool.take(message.content, message.specs)
        try:
            link.fill(buffer.arrays)
            sent, cached = 0, 0
            of_types = zip(self._caches, buffer.x, self._layout.rows(buffer.arrays), strict=True)
            for cache, x, (features, rows, *slots) in of_types:
                cache.fill(x, rows, len(features), *slots)
                if x.shape[1:] != (0,):  # the type has features
                    sent, cached = sent + len(features), cached + len(rows) - len(features)
        except BaseException:
            self._pool.take_back(buffer)
            raise
        self._count(message.content, sent, cached, message.num_bytes)
        return ReceivedGroup(message.content, buffer)

    def _count(self, content: Mapping[str, Any], sent: int, cached: int, num_bytes: int) -> None:
        with self._changed:
            numbers = (sent, num_bytes, content["ungrouped"], cached, content["fetched"])
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
            del self._batch[worker]
            for other, slices in self._coordinator.lose(worker).items():
                self._batch[other].post(self._order(Kind.SLICES, slices))
            over = self._ended == self._settings.local_workers
            if not self._coordinator.alive and not over and not self._changed.wait(_LEFT_SECONDS):
                raise TrainingError("all batch workers are gone")

    def _order(self, kind: str, slices: dict[int, int]) -> dict[str, Any]:
        limit = self._coordinator.limit
        return {"kind": kind, "epoch": self._number, "slices": sorted(slices.items()), "limit": limit}

    def _kill_hanging(self) -> None:
        """Kill batch workers of this machine that hang, so that others go on with their work. The last one stays.

        Half of the time that compute workers wait for a step is left to make it then.
        """
        here = {worker: peer for worker, peer in self._batch.items() if peer.pid is not None}
        for worker, peer in here.items():
            peer.look(_LOOK_SECONDS, self._coordinator.has_work(worker))
        hanging = [peer for peer in here.values() if peer.silent_seconds > self._settings.timeout / 2]
        for peer in hanging[: len(here) - 1]:
            peer.kill()

    # Compute workers.

    def _serve_compute(self, link: Link, rank: int) -> None:
        peer = Peer(f"compute worker {rank}", link, self._fail)
        peer.post({"kind": Kind.WELCOME})
        with self._changed:
            self._compute[rank] = peer
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
        finally:
            peer.leave()

    def _begin(self) -> None:
        """Begin the epoch that all compute workers have asked for, if all batch workers were here once."""
        settings, number = self._settings, max(self._asked, default=-1)
        everyone = self._asked[number] == settings.local_workers and len(self._came) == settings.batch_workers
        if number == self._number or not everyone:
            return
        self._number, self._epoch = number, self._schedule.epoch(number)
        self._used.clear()
        owners = self._epoch.owners(self._coordinator.alive)
        orders = self._coordinator.begin(owners, self._epoch.steps)
        for peer in self._compute.values():
            peer.post({"kind": Kind.EPOCH, "steps": self._epoch.steps})
        for worker, slices in orders.items():
            self._batch[worker].post(self._order(Kind.EPOCH, slices))

    def _deliver(self, step: int) -> None:
        # Groups are in the order of their seed slices, so that sums are the same in every run.
        groups = sorted(self._groups[step], key=lambda each: each.content["slices"])
        content = {
            "kind": Kind.STEP,
            "step": step,
            "count": self._epoch.count(step),
            "pieces": [
                [each.buffer.file.name, each.buffer.extents, each.content["graphs"]] for each in groups
            ],
        }
        first = min(self._compute)
        for rank, peer in self._compute.items():
            peer.post({**content, "counts": self._counts if rank == first else {}})
        self._counts.clear()

    def _use(self, step: int) -> None:
        self._used[step] += 1
        if self._used[step] == self._settings.local_workers:
            for each in self._groups.pop(step):
                self._pool.take_back(each.buffer)
            self._coordinator.use(step)
            for peer in self._batch.values():
                peer.post({"kind": Kind.LIMIT, "limit": self._coordinator.limit})


def work(reports: Reports, file: Path, address: str) -> None:
    """Receive until the training is over."""
    settings = Settings.load(file)
    receiver = Receiver(Source(settings), os.environ[RUN])
    with listen(file.parent, address) as server:
        reports.ready()
        receiver.serve(server)
    reports.done()
