"""The batch worker: a process that samples and reads features."""

from __future__ import annotations

import json
import os
import queue
import threading
from pathlib import Path

from ...runtime.reporting import RUN, Reports
from .rendezvous import Address, address_of, connect
from .settings import Settings, Source
from .stream import Stream

RECEIVERS = "receivers.json"
"""Addresses of the receivers of all machines, if there are several."""


def work(reports: Reports, file: Path, worker: int) -> None:
    """Make batches for all compute machines until the training is over."""
    settings = Settings.load(file)
    source = Source(settings)
    ends: queue.Queue[BaseException | None] = queue.Queue()
    streams = []
    who = {"batch worker": worker, "run": os.environ[RUN], "pid": os.getpid()}
    for address in _addresses(file.parent):
        link, welcome = connect(address, settings, who)
        streams.append(Stream(link, source, worker, welcome["first"], welcome["workers"]))
    reports.ready()
    for stream in streams:
        threading.Thread(target=_run, args=(stream, ends), daemon=True).start()
    for _ in streams:
        if (error := ends.get()) is not None:
            raise error
    reports.done()


def _addresses(folder: Path) -> list[Address]:
    file = folder / RECEIVERS
    if file.exists():
        return [(address, port) for address, port in json.loads(file.read_text())]
    return [address_of(folder)]


def _run(stream: Stream, ends: queue.Queue[BaseException | None]) -> None:
    """Run a stream, and tell how it ended."""
    try:
        stream.run()
        ends.put(None)
    except BaseException as error:
        ends.put(error)
