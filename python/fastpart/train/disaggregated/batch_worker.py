"""The batch worker: ``python -m fastpart.train.disaggregated.batch_worker SETTINGS.json NUMBER``."""

from __future__ import annotations

import sys
from pathlib import Path

from ..reporting import Reports, run
from .rendezvous import connect
from .settings import Settings, Source
from .stream import Stream


def main(reports: Reports) -> None:
    """Make batches until the training is over."""
    file, worker = Path(sys.argv[1]), int(sys.argv[2])
    settings = Settings.load(file)
    source = Source(settings)
    link, welcome = connect(file.parent, settings, {"batch worker": worker})
    stream = Stream(link, source, worker, welcome["first"], welcome["shares"])
    reports.ready()
    stream.run()
    reports.done()
    link.close()


if __name__ == "__main__":
    run(main)
