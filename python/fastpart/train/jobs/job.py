"""The job of the workers: what each of them gets, and the epochs of a training, for every method."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from torch import Tensor, nn

from ...errors import TrainingError
from ...partitions.partition import PartitionSource
from ..data.dataset import AnyDataset
from ..learning.learner import Learner
from ..models.scores import Task
from ..options import OnEpoch, TrainOptions
from ..ranks import barrier, differing, from_first, world_size
from ..registry import loaded
from ..runs.history import History
from ..runs.run_folder import RunFolder
from .warnings import DeadLayers


class Trainer(Protocol):
    """A process of a training, or the only one. All processes act in step.

    States and best weights are stored as tensors on the CPU. A worker may have two methods without arguments. ``store``
    writes what each worker keeps in files of its own. It is called before a checkpoint. ``close`` receives, for
    example, pending messages. It is called after all workers have finished.

    Attributes
    ----------
    network : torch.nn.Module
        The network. After each round its weights are equal in all workers.
    learner : Learner
        What trains it.
    """

    network: nn.Module
    learner: Learner

    def round(self, epochs: int, scored: bool) -> dict[str, Any]:
        """Train some epochs, and return the row of the history. That of rank 0 counts.

        It has at least ``loss``, ``seconds``, ``remote_bytes`` and ``worker_bytes``, and validation scores, which are
        None unless ``scored``.
        """

    def state(self) -> dict[str, Any]:
        """Return what a resume needs. Only processes with a history are asked, so this must not communicate."""

    def final(self, best: dict[str, Tensor]) -> dict[str, Any]:
        """Return scores of these weights and entries of the method for the summary. Those of rank 0 count."""


def train(
    new: Callable[[dict[str, Any]], Trainer],
    history: History | None,
    report: OnEpoch,
    every: int = 1,
    steps: bool = False,
) -> dict[str, Any]:
    """Train until rank 0 ends it, and return the summary of rank 0.

    Parameters
    ----------
    new : callable
        Returns the worker, given the state of a checkpoint, which is empty for a new training.
    history : History or None
        Keeps the epochs. Rank 0 has one, and other processes may.
    report : callable
        Called with each new row, where there is a history. It has the number of a dead layer, if there is one.
    every : int
        Epochs of a round.
    steps : bool
        Whether reported rows have the losses of their steps, as ``steps``.
    """
    state = from_first(history and history.state)
    if history is None or not state:
        worker = new(state)
    else:
        with history.restoring():
            worker = new(state)
    dead = None if history is None else DeadLayers(worker.network)
    while not from_first(history and history.over):
        epochs, scored = from_first(history and history.next(every))
        row = worker.round(epochs, scored)
        losses = {"steps": worker.learner.losses_of_all()} if steps else {}
        _refuse_different(worker.network)
        found = {} if dead is None else dead.after_round()
        if history is not None:
            history.add(row, lambda: on_cpu(worker.network), epochs)
        if from_first(history and history.due):
            _save(worker, history)
        if history is not None:
            try:
                report({**history.rows[-1], **losses, **found})
            except BaseException:  # what the user raises between two epochs loses none
                alone = world_size() == 1 or not hasattr(
                    worker, "store"
                )  # else the others would have to store theirs
                if alone and history.unsaved:
                    _save(worker, history)
                raise
    if from_first(history and history.unsaved):
        _save(worker, history)
    summary = worker.final(from_first(history and history.best))
    barrier()
    if hasattr(worker, "close"):
        worker.close()
    return summary


def _refuse_different(network: nn.Module) -> None:
    """Raise an error that names the workers whose weights are not those of the first one."""
    if ranks := differing(network.parameters()):
        named = ", ".join(f"rank {rank}" for rank in ranks)
        raise TrainingError(
            f"{named}: after a round its weights are not those of rank 0. The model or the optimizer does something "
            "else in each process, as with random numbers of its own. All workers have to make the same steps"
        )


def _save(worker: Trainer, history: History | None) -> None:
    """Save a checkpoint, before which all workers store what they keep in files of their own."""
    if hasattr(worker, "store"):
        worker.store()
    if history is not None:
        history.save(worker.state)


def on_cpu(network: nn.Module) -> dict[str, Tensor]:
    """Return the weights on the CPU. Otherwise all workers would receive tensors on the GPU of rank 0."""
    return {name: tensor.cpu() for name, tensor in network.state_dict().items()}


@dataclass(frozen=True)
class Place:
    """Where a training works.

    Attributes
    ----------
    scratch : pathlib.Path
        A folder for temporary files that all workers see.
    out : pathlib.Path
        The folder of the history.
    free_bytes : int
        Memory for the batches of a worker.
    """

    scratch: Path
    out: Path
    free_bytes: int

    def sent(self) -> dict[str, Any]:
        """Return the fields as JSON, which :meth:`received` reads in another process."""
        return {**vars(self), "scratch": os.fspath(self.scratch), "out": os.fspath(self.out)}

    @classmethod
    def received(cls, values: Mapping[str, Any]) -> Self:
        """Return what :meth:`sent` sent."""
        return cls(Path(values["scratch"]), Path(values["out"]), values["free_bytes"])


class Worker(Trainer, Protocol):
    """A process of a job. The process group exists before the worker."""

    def __init__(self, dataset: Any, options: Any, place: Place, state: dict[str, Any]) -> None:
        """Begin a training (``state`` is empty), or continue from the :meth:`state` of rank 0."""

    @staticmethod
    def open(source: PartitionSource, target: str | None) -> AnyDataset[Any]:
        """Return the dataset of a partition directory."""


@dataclass(frozen=True)
class Job:
    """A training run. Every worker gets the same job.

    Attributes
    ----------
    method : str
        The name of a method.
    worker : str
        Its :class:`.Worker`, as ``module:Class``.
    source : str
        The partition directory.
    place : Place
        The folders of the training, and the memory for batches.
    options : TrainOptions
        The parameters of the method.
    resume : bool
        Whether to continue from the checkpoint in the folder.
    threads : int
        Threads of each worker.
    steps : bool
        Whether workers report the losses of steps.
    """

    method: str
    worker: str
    source: str
    place: Place
    options: TrainOptions
    resume: bool
    threads: int
    steps: bool

    def to_json(self) -> str:
        """Return text that :meth:`from_json` reads in another process."""
        kind = type(self.options)
        options = {"kind": f"{kind.__module__}:{kind.__qualname__}", "values": self.options.sent()}
        return json.dumps({**vars(self), "place": self.place.sent(), "options": options})

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Return what :meth:`to_json` wrote."""
        values = json.loads(text)
        options, place = values.pop("options"), Place.received(values.pop("place"))
        return cls(**values, place=place, options=loaded(options["kind"]).received(options["values"]))

    def history(self) -> History:
        """Return the history in the output folder."""
        return History(self.method, self.options, RunFolder(self.place.out), self.resume)

    def work(self, history: History | None, report: OnEpoch) -> tuple[Task, dict[str, Any]]:
        """Train, and return task and summary. Rank 0 has the history, and reports each row."""
        worker_class: type[Worker] = loaded(self.worker)
        dataset = worker_class.open(self.source, self.options.labelled)
        summary = train(
            lambda state: worker_class(dataset, self.options, self.place, state),
            history,
            report,
            self.options.epochs_per_round,
            self.steps,
        )
        return dataset.task, summary
