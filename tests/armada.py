"""A receiver, batch workers and compute workers as threads of one process, for the tests of armada."""

import os
import secrets
import signal
import socket
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from fastpart.runtime.watch import Supervisor
from fastpart.train.methods.armada.batch_worker import Stream
from fastpart.train.methods.armada.driver import started
from fastpart.train.methods.armada.groups import GroupReader
from fastpart.train.methods.armada.messages import ConnectionClosedError, Kind, Link, framed
from fastpart.train.methods.armada.receiver import Receiver
from fastpart.train.methods.armada.rendezvous import Settings, Source, address_of, connect, listen


def settings_of(parts: Path, **given) -> Settings:
    default = {
        "source": str(parts),
        "fanouts": (4, 3),
        "batch_size": 100,
        "sampling": "uniform",
        "seed": 0,
        "order": "global",
        "hold": 0,
        "cache": 0.0,
        "policy": "static",
        "ahead": 2,
        "batch_workers": 1,
        "compute_workers": 1,
        "first": 0,
        "timeout": 30.0,
        "token": secrets.token_hex(16),
    }
    return Settings(local_workers=given.get("compute_workers", 1), **{**default, **given})


class Dying(Link):
    """A connection that ends after so many messages with batches, or in the middle of one."""

    def __init__(self, line: socket.socket, messages: int, half: bool) -> None:
        super().__init__(line)
        self._messages, self._half = messages, half

    def send(self, content, arrays=()):
        if content["kind"] != Kind.BATCH:
            return super().send(content, arrays)
        if self._messages == 0:
            if self._half:
                self._line.sendall(framed(content, arrays)[:6])
            self.close()
            raise ConnectionClosedError("killed by the test")
        self._messages -= 1
        return super().send(content, arrays)


class Run:
    """A run. ``deaths`` says after how many messages a batch worker dies, and whether in the middle of one."""

    seconds = 10
    """How long a step is waited for."""

    def __init__(self, folder: Path, settings: Settings, deaths=None) -> None:
        self.folder, self.settings = folder, settings
        self.name = f"fastpart-{os.getpid()}-{secrets.token_hex(4)}"
        self.source = Source(settings)
        self.receiver = Receiver(self.source, self.name)
        self.errors, self.streams, self._threads = [], {}, []
        self._deaths, self._whole = deaths or {}, True
        self._server = listen(folder, "127.0.0.1")
        self._start(self.receiver.serve, self._server)
        self.links = [
            connect(address_of(folder), settings, {"compute worker": c})[0]
            for c in range(settings.compute_workers)
        ]
        for worker in range(settings.batch_workers):
            self._start(self._work, worker)

    def _start(self, call, *arguments):
        def run():
            try:
                call(*arguments)
            except ConnectionClosedError:
                pass
            except BaseException as error:
                self.errors.append(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _work(self, worker):
        link, welcome = connect(address_of(self.folder), self.settings, {"batch worker": worker})
        if worker in self._deaths:
            link = Dying(link._line, *self._deaths[worker])
        stream = Stream(link, self.source, worker, welcome["first"], welcome["workers"])
        self.streams[worker] = stream
        try:
            stream.run()
        finally:
            link.close()

    def epoch(self, number: int):
        """Yield the batches of each step, as lists of (compute worker, levels, node rows, indptr, indices, x)."""
        self._whole = False
        for link in self.links:
            link.limit(self.seconds, None)
            link.send({"kind": Kind.EPOCH, "epoch": number})
        steps = {link.receive().content["steps"] for link in self.links}
        for step in range(*steps):
            batches = []
            for rank, link in enumerate(self.links):
                content = link.receive().content
                assert (content["kind"], content["step"]) == (Kind.STEP, step)
                assert content["count"] == self.source.schedule.epoch(number).count(step)
                if rank == 0:
                    self.counts = content["counts"]
                for piece in content["pieces"]:
                    opened = GroupReader(self.source.layout, *piece)
                    for sample in opened.batches(rank):
                        (places,), (levels,) = sample.rows, sample.levels
                        rows, x = opened.rows[0][places], opened.x[0][places]
                        edges = np.array(sample.indptr[0]), np.array(sample.indices[0])
                        batches.append((rank, levels, rows, *edges, x))
            yield batches
            for link in self.links:
                link.send({"kind": Kind.USED, "step": step})
        self._whole = True

    def files(self):
        return [file.name for file in Path("/dev/shm").glob(f"{self.name}-*")]

    def close(self):
        for link in self.links:
            link.close()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        deadline = time.monotonic() + 5
        while self.files() and time.monotonic() < deadline:
            time.sleep(0.01)
        left = self.files()
        for file in left:
            (Path("/dev/shm") / file).unlink()
        if self._whole:
            assert left == []


@contextmanager
def running(folder: Path, settings: Settings, deaths=None):
    """Yield a run, and assert that it ends, and that nothing failed."""
    run = Run(folder, settings, deaths)
    try:
        yield run
    finally:
        run.close()
    assert run.errors == []
    assert run.receiver._error is None


def by_share(batches):
    found = defaultdict(list)
    for rank, *batch in batches:
        found[rank].append(batch)
    return found


class Processes(Run):
    """A run whose receiver and batch workers are processes. One of them is stopped after its first step."""

    def __init__(self, group: Supervisor, settings: Settings, stopped: int) -> None:
        self.source, self._group, self._stopped = Source(settings), group, stopped
        folder = started(group, settings).parent
        self.links = [
            connect(address_of(folder), settings, {"compute worker": c})[0]
            for c in range(settings.compute_workers)
        ]

    def epoch(self, number: int):
        """Yield the batches of each step."""
        for step, batches in enumerate(super().epoch(number)):
            if (number, step) == (0, 0):
                os.kill(self.process(self._stopped).pid, signal.SIGSTOP)
            yield batches

    def close(self):
        for link in self.links:
            link.close()

    def process(self, worker: int):
        """Return the process of a batch worker."""
        return next(each.process for each in self._group._children if each.name == f"batch worker {worker}")
