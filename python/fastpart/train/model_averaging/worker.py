"""The process of a worker: ``python -m fastpart.train.model_averaging.worker RUN.json``, as torchrun does."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from ..config import Options
from ..libraries import import_libraries
from ..reporting import Reports, run

_PATIENCE = timedelta(days=7)
"""Of workers with each other: it is for the supervisor to say when one has failed."""


def main(reports: Reports) -> None:
    """Train, and tell the supervisor of every round."""
    settings: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    import_libraries()
    import torch
    import torch.distributed as dist

    torch.set_num_threads(settings["threads"])
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(
        "gloo", init_method=settings["rendezvous"], rank=rank, world_size=world, timeout=_PATIENCE
    )
    reports.ready()
    _train(Options.from_json(settings["options"]), settings, reports)
    dist.barrier()
    reports.done()


def _train(options: Options, settings: dict[str, Any], reports: Reports) -> None:
    from ..data import Dataset
    from ..history import History
    from ..ranks import from_first, is_first
    from .training import Worker

    dataset = Dataset(settings["src"])
    history = None
    if is_first():
        history = History(
            "sdt", options, settings["output"], settings["resume"], dataset.manifest, settings["how"]
        )
    worker = Worker(
        dataset, options, settings["how"], Path(settings["scratch"]), from_first(history and history.state)
    )
    while not from_first(history and history.over):
        done = from_first(history and history.first_epoch)
        epochs = min(settings["how"]["average_every"], options.epochs - done)
        row = worker.round(epochs)
        if history is not None:
            history.add(row, worker.network.state_dict, worker.state, epochs)
            reports.send("epoch", history.rows[-1])
    totals = worker.final(from_first(history and history.best))
    if history is not None:
        history.save()
        reports.send("result", {"task": vars(dataset.task), "totals": totals})


if __name__ == "__main__":
    run(main)
