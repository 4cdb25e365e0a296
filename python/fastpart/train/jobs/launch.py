"""Start the workers of a training on this machine, or join those that torchrun started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch.distributed as dist

from ... import _core, parameters
from ...options import RunOptions
from ...parameters import StrPath
from ..config import OnEpoch, Options
from ..following import follow, output_of
from ..launchers import refuse_other_launchers, under_torchrun
from ..ranks import from_first, is_first
from ..settings import torch_settings
from ..supervisor import Supervisor
from ..trained import TrainedModel
from ..validation import refuse_patience_without_validation
from .group import DEVICES, Device, refuse_few_gpus, restarted, shared_output, torchrun_group
from .job import Job
from .worker import Graph

Made = TypeVar("Made")


@dataclass(frozen=True)
class Launch:
    """How the workers of a training run.

    Attributes
    ----------
    run, report
        Threads, and the function that gets each row of the history.
    folder : pathlib.Path
        The folder of the history.
    resume : bool
        Whether to continue from the checkpoint there.
    device : str
        Where the workers compute.
    timeout : float
        Seconds that workers wait for each other.
    group : Supervisor or None
        What starts the workers. None: this process is one of those that torchrun started.
    """

    run: RunOptions
    report: OnEpoch
    folder: Path
    resume: bool
    device: Device
    timeout: float
    group: Supervisor | None

    @property
    def scratch(self) -> Path:
        """A folder for temporary files that all workers see."""
        return self.folder.absolute() if self.group is None else self.group.folder

    def once(self, make: Callable[[], Made]) -> Made:
        """Return what ``make`` returns in the process of the user, or in rank 0."""
        if self.group is not None:
            return make()
        made: Made = from_first(make() if is_first() else None)
        return made

    def train(
        self,
        method: str,
        options: Options,
        how: Mapping[str, Any],
        dataset: Graph,
        workers: int,
        summary: Mapping[str, Any],
        **running: Any,
    ) -> TrainedModel:
        """Train with so many workers, and return the result. ``summary`` is added to it. The rest is as in a job."""
        refuse_patience_without_validation(dataset, options)
        out = os.path.abspath(self.folder)
        job = Job(
            method=method,
            source=os.path.abspath(dataset.path),
            out=out,
            scratch=out,
            options=options,
            how=dict(how),
            resume=self.resume,
            threads=self.run.threads or 1,
            device=self.device,
            running={"timeout": self.timeout, **running},
        )
        if self.group is not None:
            return self._supervised(self.group, job, dataset, workers, summary)
        if is_first():
            job.history(dataset, resume=False)  # creates the folder
        dist.barrier()
        with torch_settings(self.run.threads, options.seed):
            task, scores = job.work(self.report)
        return TrainedModel.of(method, task, job.history(dataset, resume=True), {**scores, **summary})

    def _supervised(
        self, group: Supervisor, job: Job, dataset: Graph, workers: int, summary: Mapping[str, Any]
    ) -> TrainedModel:
        """Start the workers, and follow them."""
        refuse_few_gpus(self.device, workers)
        each = max(1, (self.run.threads or _core.default_threads()) // workers)
        options = job.options.importable(self.folder)
        job = replace(job, scratch=str(group.folder), threads=each, options=options)
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
            group.start(
                f"worker {rank}", "fastpart.train.jobs.process", str(file), environment=common | ranks
            )
        return follow(group, history, self.report, summary)


@contextmanager
def launching(
    out: StrPath | None,
    resume: bool,
    run: RunOptions,
    report: OnEpoch,
    timeout: float,
    device: Device = "cpu",
    workers: int | None = None,
) -> Iterator[Launch]:
    """Yield how the workers run. The parameters are those of the user. torchrun decides about ``workers`` itself."""
    resume, timeout = parameters.flag("resume", resume), parameters.positive("timeout", timeout)
    parameters.choice("device", device, DEVICES)
    refuse_other_launchers()
    if under_torchrun():
        folder = shared_output(out, workers)
        refuse_few_gpus(device, int(os.environ.get("LOCAL_WORLD_SIZE", 1)))
        with torchrun_group(device, timeout):
            yield Launch(run, report, folder, resume or restarted(folder), device, timeout, None)
    else:
        with Supervisor(run.tmp_dir, timeout) as group:
            folder = output_of(group, out, resume)
            yield Launch(run, report, folder, resume, device, timeout, group)
