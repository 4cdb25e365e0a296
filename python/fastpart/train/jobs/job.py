"""The job of the workers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch import Tensor, nn

from ..config import Options
from ..history import History
from ..ranks import from_first, is_first
from ..scores import Task
from .methods import worker_of
from .worker import Graph


@dataclass(frozen=True)
class Job:
    """A training run. Every worker gets the same job.

    Attributes
    ----------
    method : str
        A name in ``METHODS``.
    source, out, scratch : str
        The partition directory, the folder of the history, and a shared folder for temporary files.
    options : Options
        Options of the model and its training.
    how : dict
        Parameters of the method. ``average_every`` is the number of epochs per round.
    resume : bool
        Whether to continue from the checkpoint in ``out``.
    threads : int
        Threads of each worker.
    device : str
        Where the workers compute: "cpu" or "cuda".
    """

    method: str
    source: str
    out: str
    scratch: str
    options: Options
    how: dict[str, Any]
    resume: bool
    threads: int
    device: str = "cpu"

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
        return History(self.method, self.options, self.out, resume, dataset.manifest, self.how)

    def work(self, report: Callable[[dict[str, Any]], object]) -> tuple[Task, dict[str, Any]]:
        """Train in a process group, and return task and summary. Rank 0 keeps the history and reports each row."""
        kind = worker_of(self.method)
        dataset = kind.open(self.source)
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
                report(history.rows[-1])
        summary = worker.final(from_first(history and history.best))
        if history is not None:
            history.save()
        dist.barrier()
        if hasattr(worker, "close"):
            worker.close()
        return dataset.task, summary


def _on_cpu(network: nn.Module) -> dict[str, Tensor]:
    """Return the weights on the CPU. Otherwise all workers would receive tensors on the GPU of rank 0."""
    return {name: tensor.cpu() for name, tensor in network.state_dict().items()}
