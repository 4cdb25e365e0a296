"""The process of a worker: ``python -m fastpart.train.model_averaging.worker JOB.json``, started by a supervisor."""

from __future__ import annotations

import os
import sys
from datetime import timedelta
from pathlib import Path

from ..libraries import import_libraries
from ..reporting import Reports, run

_PATIENCE = timedelta(days=7)
"""Of workers with each other: it is for the supervisor to say when one has failed."""


def main(reports: Reports) -> None:
    """Train, and tell the supervisor of every round."""
    import_libraries()
    import torch
    import torch.distributed as dist

    from .job import Job

    file = Path(sys.argv[1])
    job = Job.from_json(file.read_text())
    torch.set_num_threads(job.threads)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    # torch's own rendezvous would listen on all interfaces.
    rendezvous = f"file://{file.parent}/rendezvous"
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=world, timeout=_PATIENCE)
    reports.ready()
    task, scores = job.work(lambda row: reports.send("epoch", row))
    if rank == 0:
        reports.send("result", {"task": vars(task), "totals": scores})
    reports.done()


if __name__ == "__main__":
    run(main)
