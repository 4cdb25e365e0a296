"""What workers are told, and the work that they do together."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch.distributed as dist

from ..config import Options
from ..data import Dataset
from ..history import History
from ..ranks import from_first, is_first
from ..scores import Task
from .training import Worker


@dataclass(frozen=True)
class Job:
    """A training run, as every worker sees it.

    Attributes
    ----------
    src, output, scratch : str
        The partition directory; the folder of the history; a folder for temporary files that all workers share.
    options : Options
        Of the model and its training.
    how : dict
        ``average``, ``average_every``, ``moments``: what :func:`fastpart.train.sdt` was told.
    resume : bool
        Whether to go on from the checkpoint in ``output``.
    threads : int
        Of each worker.
    """

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

    def history(self, dataset: Dataset, resume: bool) -> History:
        """Return the history in the output folder."""
        return History("sdt", self.options, self.output, resume, dataset.manifest, self.how)

    def work(self, told: Callable[[dict[str, Any]], object]) -> tuple[Task, dict[str, float]]:
        """Train in a process group; rank 0 keeps the history, and tells of each row. Return task and scores."""
        dataset = Dataset(self.src)
        history = self.history(dataset, self.resume) if is_first() else None
        scratch = Path(self.scratch)
        worker = Worker(dataset, self.options, self.how, scratch, from_first(history and history.state))
        while not from_first(history and history.over):
            done = from_first(history and history.first_epoch)
            epochs = min(self.how["average_every"], self.options.epochs - done)
            row = worker.round(epochs)
            if history is not None:
                history.add(row, worker.network.state_dict, worker.state, epochs)
                told(history.rows[-1])
        scores = worker.final(from_first(history and history.best))
        if history is not None:
            history.save()
        dist.barrier()
        return dataset.task, scores

    def at(self, folder: Path) -> Job:
        """Return the job with temporary files in a folder."""
        return replace(self, scratch=os.path.abspath(folder))
