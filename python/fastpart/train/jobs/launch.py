"""Start the workers of a training on this machine, or join those that a launcher started."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from ... import _core
from ...core.options import RunOptions
from ...errors import FastpartError
from ...runtime.environment import found
from ...runtime.watch import Supervisor
from ..beginning import begin
from ..config import Call, Options
from ..following import follow, output_of
from ..history import History
from ..identity import data_of, must_agree
from ..keywords import Device, OnEpoch
from ..memory import Need, bytes_for_batches, left_by, may_copy, of_processes, processes, workers_here
from ..models import build
from ..notebooks import in_notebook
from ..ranks import barrier, from_first, is_first
from ..run_folder import MODEL, SCRATCH, RunFolder
from ..scores import Task
from ..settings import torch_settings
from ..trainable import Make
from ..trained import TrainedModel
from ..validation import refuse_patience_without_validation
from .group import joined, refuse_few_gpus, restarted, shared_output
from .job import Job
from .worker import Graph

Result = TypeVar("Result")

PROCESS = "fastpart.train.jobs.process"
"""The module that a worker executes."""


@dataclass(frozen=True)
class Launch:
    """How the workers of a training run.

    Attributes
    ----------
    run, report
        Threads, and the function that gets each row of the history.
    folder : RunFolder
        The folder of the history.
    resume : bool
        Whether to continue from the checkpoint there.
    device : str
        Where the workers compute.
    timeout : float
        Seconds that workers wait for each other.
    group : Supervisor or None
        The supervisor that starts the workers. None: this process is one of those that a launcher started.
    scratch : pathlib.Path
        A folder for temporary files that all workers see.
    steps : bool
        Whether rows are reported with the losses of their steps.
    """

    run: RunOptions
    report: OnEpoch
    folder: RunFolder
    resume: bool
    device: Device
    timeout: float
    group: Supervisor | None
    scratch: Path
    steps: bool

    @property
    def _copies(self) -> bool:
        """Return whether workers are copies of a process that has torch.

        Looking for GPUs may touch them, as torch does when it is imported in full. Then a copy could not use them.
        """
        return self.device == "cpu"

    def once(self, make: Callable[[], Result]) -> Result:
        """Return what ``make`` returns in the process of the user, or in rank 0."""
        return make() if self.group is not None else _agreed(make)

    def begin(
        self,
        method: str,
        options: Options,
        how: Mapping[str, Any],
        source: Graph,
        task: Task,
        make: Make = build,
    ) -> None:
        """Note what is trained. Refuse to go on with another training. The parameters are those of :meth:`train`."""

        def begun() -> None:
            must = must_agree(method, options, how, data_of(source.path, source.manifest))
            begin(self.folder, self.resume, options, must, source.path, task, make)

        self.once(begun)

    def train(
        self,
        method: str,
        options: Options,
        how: Mapping[str, Any],
        dataset: Graph,
        workers: int,
        summary: Mapping[str, Any],
        needs: Sequence[Need],
        others: Sequence[Need] = (),
        *,
        source: Graph | None = None,
        task: Task | None = None,
        make: Make = build,
        **running: Any,
    ) -> TrainedModel:
        """Train with so many workers, and return the result.

        ``summary`` is added to it. ``needs`` states the memory of each worker, and ``others`` that of other processes.
        A training that exceeds the memory limit is refused. More batches may take the memory that it leaves. ``source``
        is what the user gave, if the dataset was made from it. ``task`` and ``make`` are what networks are made for and
        by, if not for that of the dataset and by its model alone. The rest is as in a job.
        """
        here = workers_here(workers)
        stated = [*of_processes(needs, here), *others]
        copies = self._copies and may_copy(here, stated, self.run)
        started = processes(here, copies) if self.group is not None else []
        left = left_by([*started, *stated], self.run)
        running["free_bytes"] = bytes_for_batches(left, here)
        refuse_patience_without_validation(dataset, options)
        self.begin(method, options, how, source or dataset, task or dataset.task, make)
        out = os.path.abspath(self.folder.path)
        job = Job(
            method=method,
            source=os.path.abspath(dataset.path),
            out=out,
            scratch=str(self.scratch),
            options=options,
            how=dict(how),
            resume=self.resume,
            threads=self.run.threads or 1,
            device=self.device,
            running={"timeout": self.timeout, "steps": self.steps, **running},
        )
        with self.folder.kept():
            if self.group is not None:
                return self._supervised(self.group, job, workers, copies, summary)
            with torch_settings(self.run.threads, options.seed):
                task, scores = job.work(self.report)
            history = job.history(resume=True)
            trained = TrainedModel.of(method, task, history, {**scores, **summary})
            self.once(lambda: history.finish(vars(task), trained.summary))
            return trained

    def _supervised(
        self, group: Supervisor, job: Job, workers: int, copies: bool, summary: Mapping[str, Any]
    ) -> TrainedModel:
        """Start the workers, as copies of a server or as new interpreters, and follow them."""
        refuse_few_gpus(self.device, workers)
        each = max(1, (self.run.threads or _core.default_threads()) // workers)
        options = self._importable(job.options)
        job = replace(job, threads=each, options=options)
        history = History(job.method, options, self.folder, job.resume)
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
            group.start(f"worker {rank}", PROCESS, str(file), environment=common | ranks, preloaded=copies)
        return follow(group, history, self.report, summary)

    def _importable(self, options: Options) -> Options:
        """Return options whose model the workers can import. That of a notebook goes to a file."""
        if not in_notebook(options.model):
            return options
        self.folder.add([MODEL])
        options = options.importable(self.folder.path)
        self.folder.update(options=options.stored())
        return options


@contextmanager
def launching(call: Call, workers: int | None = None) -> Iterator[Launch]:
    """Yield how the workers run. A launcher decides about ``workers``, the number that the user asked for, itself."""
    resume, overwrite = call.resume, call.overwrite
    timeout, device = call.timeout, call.device
    if (ranks := found()) is not None:
        path = shared_output(ranks, call.out, workers)
        resume, overwrite = resume or restarted(), overwrite and not restarted()
        with joined(ranks, device, timeout):
            folder = _agreed(lambda: RunFolder.claim(path, resume, overwrite))
            with folder.scratch() if is_first() else nullcontext():
                scratch = folder.path.absolute() / SCRATCH
                yield Launch(
                    call.run, call.report, folder, resume, device, timeout, None, scratch, call.steps
                )
                barrier()  # no rank leaves while another one needs it
    else:
        with Supervisor(call.run.tmp_dir, timeout) as group:
            folder = output_of(group, call.out, resume, overwrite)
            yield Launch(
                call.run, call.report, folder, resume, device, timeout, group, group.folder, call.steps
            )


def _agreed(make: Callable[[], Result]) -> Result:
    """Return what ``make`` returns in rank 0. What it refuses, all ranks refuse: else they would wait for rank 0."""
    made: Result | None = None
    refusal: Exception | None = None
    if is_first():
        try:
            made = make()
        except (FastpartError, OSError) as error:
            refusal = error
    made, refusal = from_first((made, refusal))
    if refusal is not None:
        raise refusal
    return made
