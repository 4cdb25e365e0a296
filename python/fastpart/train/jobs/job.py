"""What workers are told, and the work that they do together."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch.distributed as dist
from torch import Tensor, nn

from ...parameters import StrPath
from ..config import Options
from ..history import History
from ..ranks import from_first, is_first
from ..scores import Task
from .methods import METHODS


class Graph(Protocol):
    """What every method knows of what it trains on.

    Attributes
    ----------
    path : pathlib.Path
        The partition directory.
    manifest : mapping
        Of that directory.
    task : Task
        What there is to learn.
    """

    @property
    def path(self) -> Path: ...  # noqa: D102
    @property
    def manifest(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def task(self) -> Task: ...  # noqa: D102


class Worker(Protocol):
    """What a method makes of each process. The process group is there when it is made, and all act in step.

    States and best weights are kept, and come back, as tensors on the CPU. A worker that must let go of something, as
    of messages that nobody waits for, has a method ``close`` without arguments, called after all have finished.

    Attributes
    ----------
    network : torch.nn.Module
        With weights that are the same at all workers after each round.
    """

    network: nn.Module

    def __init__(
        self, dataset: Any, options: Options, how: dict[str, Any], scratch: Path, state: dict[str, Any]
    ) -> None:
        """Begin, or go on from what :meth:`state` of rank 0 returned; ``state`` is empty in the beginning."""

    @staticmethod
    def open(src: StrPath) -> Graph:
        """Return the dataset of a partition directory."""

    def round(self, epochs: int) -> dict[str, Any]:
        """Train so many epochs, and return the row of the metrics, which is rank 0's.

        It has at least ``loss``, ``seconds``, ``remote_bytes`` and ``worker_bytes``, and scores, if there are any.
        """

    def state(self) -> dict[str, Any]:
        """Return what is needed to go on from here; asked of rank 0 only, so that it must not ask others."""

    def final(self, best: dict[str, Tensor]) -> dict[str, Any]:
        """Return scores of these weights, and what the method adds to the totals, for JSON; rank 0's count."""


@dataclass(frozen=True)
class Job:
    """A training run, as every worker sees it.

    Attributes
    ----------
    method : str
        A name in ``METHODS``.
    src, output, scratch : str
        The partition directory; the folder of the history; a folder for temporary files that all workers share.
    options : Options
        Of the model and its training.
    how : dict
        What the user said of the method itself; with ``average_every``, the epochs of a round.
    resume : bool
        Whether to go on from the checkpoint in ``output``.
    threads : int
        Of each worker.
    """

    method: str
    src: str
    output: str
    scratch: str
    options: Options
    how: dict[str, Any]
    resume: bool
    threads: int

    def to_json(self) -> str:
        """Return text that :meth:`from_json` reads in another process."""
        return json.dumps({**asdict(self), "options": self.options.to_json()})

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Return what :meth:`to_json` wrote."""
        values = json.loads(text)
        return cls(**{**values, "options": Options.from_json(values["options"])})

    def history(self, dataset: Graph, resume: bool) -> History:
        """Return the history in the output folder."""
        return History(self.method, self.options, self.output, resume, dataset.manifest, self.how)

    def work(self, told: Callable[[dict[str, Any]], object]) -> tuple[Task, dict[str, Any]]:
        """Train in a process group; rank 0 keeps the history, and tells of each row. Return task and totals."""
        kind = METHODS[self.method].worker()
        dataset = kind.open(self.src)
        history = self.history(dataset, self.resume) if is_first() else None
        state = from_first(history and history.state)
        worker = kind(dataset, self.options, self.how, Path(self.scratch), state)
        every = self.how.get("average_every", 1)
        while not from_first(history and history.over):
            done = from_first(history and history.first_epoch)
            epochs = min(every, self.options.epochs - done)
            row = worker.round(epochs)
            if history is not None:
                history.add(row, lambda: _on_cpu(worker.network), worker.state, epochs)
                told(history.rows[-1])
        totals = worker.final(from_first(history and history.best))
        if history is not None:
            history.save()
        dist.barrier()
        if hasattr(worker, "close"):
            worker.close()
        return dataset.task, totals


def _on_cpu(network: nn.Module) -> dict[str, Tensor]:
    """Return the weights; those on a GPU would come to all workers as tensors on the GPU of rank 0."""
    return {name: tensor.cpu() for name, tensor in network.state_dict().items()}
