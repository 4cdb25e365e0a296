"""The batch worker: a process that samples and reads features."""

from __future__ import annotations

from pathlib import Path

from ..reporting import Reports
from .rendezvous import connect
from .settings import Settings, Source
from .stream import Stream


def work(reports: Reports, file: Path, worker: int) -> None:
    """Make batches until the training is over."""
    settings = Settings.load(file)
    source = Source(settings)
    link, welcome = connect(file.parent, settings, {"batch worker": worker})
    stream = Stream(link, source, worker, welcome["first"], welcome["shares"])
    reports.ready()
    stream.run()
    reports.done()
    link.close()
