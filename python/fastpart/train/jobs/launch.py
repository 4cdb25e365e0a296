"""Start the workers of a job on this machine, or join those that torchrun started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import torch.distributed as dist

from ... import _core
from ...options import RunOptions
from ..config import OnEpoch
from ..following import follow
from ..ranks import is_first
from ..settings import torch_settings
from ..supervisor import Supervisor
from ..trained import TrainedModel
from .job import Job
from .worker import Graph


class NewJob(Protocol):
    """Returns the job, given its folders and threads: a :class:`functools.partial` of :class:`.job.Job`."""

    def __call__(self, *, source: str, out: str, scratch: str, threads: int) -> Job: ...  # noqa: D102


def supervised(
    group: Supervisor,
    new: NewJob,
    dataset: Graph,
    out: Path,
    workers: int,
    run: RunOptions,
    report: OnEpoch,
    summary: Mapping[str, Any],
) -> TrainedModel:
    """Start all workers on this machine, and return their result. ``summary`` is added to it."""
    each = max(1, (run.threads or _core.default_threads()) // workers)
    job = new(
        source=os.path.abspath(dataset.path),
        out=os.path.abspath(out),
        scratch=str(group.folder),
        threads=each,
    )
    job = replace(job, options=job.options.importable(out))
    history = job.history(dataset, job.resume)
    file = group.folder / "job.json"
    file.write_text(job.to_json())
    common = {
        "WORLD_SIZE": str(workers),
        "LOCAL_WORLD_SIZE": str(workers),
        "OMP_NUM_THREADS": str(each),
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
    }
    for rank in range(workers):
        ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        group.start(f"worker {rank}", "fastpart.train.jobs.process", str(file), environment=common | ranks)
    return follow(group, history, report, summary)


def joined(
    new: NewJob,
    dataset: Graph,
    out: Path,
    run: RunOptions,
    report: OnEpoch,
    summary: Mapping[str, Any],
) -> TrainedModel:
    """Work as one of the workers of an existing group, and return the result. ``summary`` is added to it."""
    folder = os.path.abspath(out)
    job = new(source=os.path.abspath(dataset.path), out=folder, scratch=folder, threads=run.threads or 1)

    if is_first():
        job.history(dataset, resume=False)  # creates the folder
    dist.barrier()
    with torch_settings(run.threads, job.options.seed):
        task, scores = job.work(report)
    history = job.history(dataset, resume=True)
    return TrainedModel.of(job.method, task, history, {**scores, **summary})
