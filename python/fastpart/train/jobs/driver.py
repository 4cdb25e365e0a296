"""The driver of a training: what is checked, stated and noted before workers train, and how they are started."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, ClassVar

from ... import _core
from ...core.notes import log
from ...errors import MemoryBudgetError, ParameterError
from ...runtime.environment import found
from ...runtime.watch import Supervisor
from ..data.dataset import AnyDataset
from ..learning.metrics import refuse_patience_without_validation
from ..learning.trainable import Example, Make, refuse_before_workers
from ..memory import Need, bytes_for_batches, left_by, may_copy, of_processes, processes, workers_here
from ..models import build
from ..models.scores import Task, task_of
from ..options import OnEpoch, TrainOptions
from ..ranks import is_first, torch_settings
from ..registry import Method
from ..runs.baselines import baselines_of
from ..runs.beginning import begin
from ..runs.history import History
from ..runs.identity import data_of, must_agree
from ..runs.trained import TrainedModel
from .job import Job, Place
from .launch import Launch, launching, refuse_few_gpus
from .warnings import Guessing, Undefined, entropy_of_classes, remedy_of, warn_of_scales, watched

_STEPS = 30
"""A network that learns classes may begin with the loss of guessing, or more, for so many steps."""

PROCESS = "fastpart.train.jobs.process"
"""The module that a worker executes."""


class Driver(ABC):
    """A training. Methods add what is theirs: they check their parameters when they make one, and state their memory.

    Parameters
    ----------
    method : Method
        The method.
    options : TrainOptions
        Its parameters.
    dataset : AnyDataset
        The parts.
    workers : int
        How many processes train, on all machines.
    asked : int, optional
        How many the user asked for. A launcher decides about it itself.

    Attributes
    ----------
    decisive : dict
        Parameters of the method that change its results. A resume must have the same.
    task, make
        What networks are made for, and by.
    of_model : Task or None
        The task of the model, if it is only a part of the network.
    example : tuple of torch.Tensor or None
        Outputs and labels to try a loss on. None: those of the task.
    source : AnyDataset
        The parts of the user, if ``dataset`` was made from them.
    """

    alone: ClassVar = False
    """Whether the process of the user trains, also under a launcher."""

    reads_features = True
    """Whether the network has features of the directory as inputs."""

    synchronised: ClassVar = False
    """Whether the copies of a network normalise batches together."""

    told: ClassVar[tuple[str, ...]] = ("halo_rf", "label_skew")
    """Measures of the partition that the summary repeats."""

    any_workers: bool = False
    """Whether fewer workers train the same, so that their number may be lowered until they fit the memory."""

    def __init__(
        self,
        method: Method,
        options: TrainOptions,
        dataset: AnyDataset[Any],
        workers: int,
        asked: int | None = None,
    ) -> None:
        self.method, self.options = method, options
        self.dataset = self.source = dataset
        if not method.types:
            dataset.refuse_types()
        if self.options.relation_fanouts is not None and not dataset.has_types:
            raise ParameterError("fanouts: the graph has no relations by name. Pass a list, as [15, 10]")
        self.workers, self._asked = workers, asked
        self.decisive: dict[str, Any] = {}
        self.task: Task = dataset.task
        self.make: Make = build
        self.example: Example | None = None
        self.of_model: Task | None = None

    def summary(self) -> dict[str, Any]:
        """Return what the summary of the training says of parts and workers."""
        known = self.dataset.manifest.get("summary", {})
        facts = {"parts": self.dataset.partition.k, "workers": self.workers}
        return {**facts, **{name: known.get(name) for name in self.told}}

    @property
    def copies(self) -> int:
        """How many copies of the network train at a time."""
        return self.workers

    @abstractmethod
    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes, and what other processes take."""

    def refuse(self) -> None:
        """Refuse what cannot be trained, before workers start for it."""
        refuse_before_workers(
            self.task,
            self.options,
            self.copies,
            self.make,
            self.example,
            self.synchronised,
            self.of_model,
        )

    def guessing(self) -> Guessing | None:
        """Return how the network looks if it learns nothing. None where that is not known, as of losses of users."""
        loss = None if self.options.loss is not None else entropy_of_classes(self.dataset)
        size = self.options.batch_size or self.dataset.num_train
        steps = -(-self.dataset.num_train // size)
        return None if loss is None else Guessing(loss, rows=3, epochs=-(-_STEPS // steps))

    def prepare(self, launch: Launch, stack: ExitStack) -> None:  # noqa: B027  # most methods have nothing to prepare
        """Do what comes before the workers. The stack ends with them."""

    def finished(self, launch: Launch, trained: TrainedModel) -> TrainedModel:
        """Return the result with what the method adds."""
        return trained

    def train(self) -> TrainedModel:
        """Train, and return the result.

        Raises
        ------
        MemoryBudgetError
            It exceeds the memory limit.
        """
        self.fit()
        self.refuse()
        with launching(self.options, self._asked, self.alone) as launch, ExitStack() as stack:
            self.prepare(launch, stack)
            refuse_patience_without_validation(self.dataset, self.options)
            if is_first() and self.reads_features:
                warn_of_scales(self.source)
            free_bytes, copies = self._state_memory(launch)
            self.begin(launch)
            with launch.folder.kept():
                start = time.perf_counter()
                trained = self._run(launch, free_bytes, copies)
                trained = self._with_baselines(launch, trained, time.perf_counter() - start)
                return self.finished(launch, trained)

    def fit(self) -> None:
        """Lower the number of workers until their memory fits the limit, unless the user or a launcher decides it."""
        if not self.any_workers or self._asked is not None or found() is not None:
            return
        usual = self.workers
        while self.workers > 1 and not self._fits():
            self.workers -= 1
        if self.workers < usual and self._fits():  # else the refusal says what is missing
            log.info("workers: %d, since %d need more than the memory limit", self.workers, usual)

    def _fits(self) -> bool:
        (mine, others), run = self.needs(), self.options.run
        stated = [*of_processes(mine, self.workers), *others]
        try:
            left_by([*processes(self.workers, may_copy(self.workers, stated, run)), *stated], run)
        except MemoryBudgetError:
            return False
        return True

    def _state_memory(self, launch: Launch) -> tuple[int, bool]:
        """Return the bytes for batches of a worker, and whether workers are copies of a process that has torch.

        Looking for GPUs may touch them, as torch does when it is imported in full. Then a copy could not use them.
        """
        (mine, others), run = self.needs(), self.options.run
        here = 1 if self.alone else workers_here(self.workers)
        stated = [*of_processes(mine, here), *others]
        copies = self.options.device == "cpu" and may_copy(here, stated, run)
        started = processes(here, copies) if launch.group is not None else []
        return bytes_for_batches(left_by([*started, *stated], run), here), copies

    def begin(self, launch: Launch) -> None:
        """Note what is trained. Refuse to go on with another training."""

        def begun() -> None:
            path = self.source.path
            must = must_agree(
                self.method.name, self.options, self.decisive, data_of(path, self.source.manifest)
            )
            begin(launch.folder, launch.resume, self.options, must, path, self.task, self.make)

        launch.once(begun)

    def _run(self, launch: Launch, free_bytes: int, copies: bool) -> TrainedModel:
        """Train by workers that are started, or in this process."""
        job = Job(
            method=self.method.name,
            worker=self.method.worker,
            source=os.path.abspath(self.dataset.path),
            place=Place(launch.scratch, launch.folder.path.absolute(), free_bytes),
            options=launch.importable(self.options) if launch.group is not None else self.options,
            resume=launch.resume,
            threads=self._threads(launch),
            steps=self.options.reports_steps,
        )
        history = History(job.method, job.options, launch.folder, job.resume)
        undefined = Undefined(self.source, self.options.model if self.reads_features else None)
        report = watched(undefined.watched(self.options.report), self.guessing(), remedy_of(self.source))
        if launch.group is not None:
            refuse_few_gpus(self.options.device, self.workers)
            _start(launch.group, job, self.workers, copies)
            trained = follow(launch.group, history, report, self.summary())
            undefined.end(trained.summary)
            return trained
        with torch_settings(self.options.threads, self.options.seed):
            task, scores = job.work(history if self.alone or is_first() else None, report)
        trained = TrainedModel._of_history(task, history.reread(), {**scores, **self.summary()})
        launch.once(lambda: history.finish(task.stored(), trained.summary))
        if is_first():
            undefined.end(trained.summary)
        return trained

    def _with_baselines(self, launch: Launch, trained: TrainedModel, seconds: float) -> TrainedModel:
        """Return the result with the baselines in its summary, also in the folder."""
        if not self.options.baselines or "baselines" in self.method.without:
            return trained
        summary = trained.summary
        found = launch.once(lambda: baselines_of(self.source, self.options, summary, launch.scratch, seconds))
        summary = {**summary, "baselines": found}
        launch.once(lambda: launch.folder.update(summary=summary))
        return replace(trained, summary=summary)

    def _threads(self, launch: Launch) -> int:
        threads = self.options.threads
        if launch.group is None:
            return threads or 1
        return max(1, (threads or _core.default_threads()) // self.workers)


def _start(group: Supervisor, job: Job, workers: int, copies: bool) -> None:
    """Start the workers, as copies of a server or as new interpreters."""
    log.info("starting %d worker%s", workers, "" if workers == 1 else "s")
    file = group.folder / "job.json"
    file.write_text(job.to_json())
    common = {
        "WORLD_SIZE": str(workers),
        "LOCAL_WORLD_SIZE": str(workers),
        "OMP_NUM_THREADS": str(job.threads),
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
    }
    for rank in range(workers):
        ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        group.start(f"worker {rank}", PROCESS, str(file), environment=common | ranks, preloaded=copies)


def follow(
    group: Supervisor, history: History, report: OnEpoch, summary: Mapping[str, Any] | None = None
) -> TrainedModel:
    """Wait until all processes are done, and return the result that rank 0 saved.

    ``report`` gets each row. ``summary`` is added to the result.
    """
    result: dict[str, Any] = {}
    for _, kind, content in group.messages():
        if kind == "epoch":
            report(content)
        elif kind == "result":
            result = content
    task, scores = task_of(result["task"]), result["summary"]
    trained = TrainedModel._of_history(task, history.reread(), {**scores, **(summary or {})})
    history.finish(task.stored(), trained.summary)
    return trained
