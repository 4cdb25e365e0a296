"""The batch worker: a process that samples and reads features."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from ...core.parsing import json_object
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
