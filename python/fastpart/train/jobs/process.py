"""The training process: ``python -m fastpart.train.jobs.process JOB.json``, started by a supervisor."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path

from ...runtime.reporting import Reports, run
from ..plugged import import_torch

_START_SECONDS = timedelta(days=7).total_seconds()
"""How long workers wait for each other to start. The supervisor ends them if one does not."""


def main(reports: Reports) -> None:
    """Train, and report every round to the supervisor."""
    file = Path(sys.argv[1])
    text = file.read_text()
    import_torch()
    import torch
    import torch.distributed as dist

    from .job import Job
    from .launch import join_group, meet

    job = Job.from_json(text)
    torch.set_num_threads(job.threads)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    # torch's own rendezvous would listen on all interfaces.
    store = dist.FileStore(f"{file.parent}/rendezvous", world)
    meet(store, rank, world, _START_SECONDS)
    timeout = timedelta(seconds=job.options.timeout)
    join_group(job.options.device, store=store, rank=rank, world_size=world, timeout=timeout)
    reports.ready()
    history = None if rank else job.history()
    task, summary = job.work(history, lambda row: reports.send("epoch", row))
    if rank == 0:
        reports.send("result", {"task": task.stored(), "summary": summary})
    reports.done()


if __name__ == "__main__":
    run(main)
