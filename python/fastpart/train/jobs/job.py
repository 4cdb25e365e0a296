"""The job of the workers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ..config import Options
from ..runs.history import History
from ..runs.run_folder import RunFolder
from ..scores import Task
from ..trainer import ROOMS
from ..typed_data import TypedDataset
from .loop import Report, train
from .worker import Worker


@dataclass(frozen=True)
class Job:
    """A training run. Every worker gets the same job.

    Attributes
    ----------
    method : str
        The name of a method.
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
    running : dict
        Parameters of the method that do not change its results. A resume may have others. ``timeout`` is the number of
        seconds that workers wait for each other.
    """

    method: str
    source: str
    out: str
    scratch: str
    options: Options
    how: dict[str, Any]
    resume: bool
    threads: int
    device: str
    running: dict[str, Any]

    def to_json(self) -> str:
        """Return text that :meth:`from_json` reads in another process."""
        return json.dumps({**asdict(self), "options": self.options.to_json()})

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Return what :meth:`to_json` wrote."""
        values = json.loads(text)
        return cls(**{**values, "options": Options.from_json(values["options"])})

    def history(self) -> History:
        """Return the history in the output folder."""
        return History(self.method, self.options, RunFolder(Path(self.out)), self.resume)

    def work(self, history: History | None, report: Report) -> tuple[Task, dict[str, Any]]:
        """Train, and return task and summary. Rank 0 has the history, and reports each row."""
        worker_class: type[Worker] = import_module(f"{ROOMS[self.method]}.training").Worker
        dataset = worker_class.open(self.source, self.options.target)
        if isinstance(dataset, TypedDataset):
            worker_class = import_module(f"{ROOMS[self.method]}.typed_training").Worker
        how, scratch = {**self.how, **self.running}, Path(self.scratch)
        summary = train(
            lambda state: worker_class(dataset, self.options, how, scratch, state),
            history,
            report,
            how.get("average_every", 1),
            self.running["steps"],
        )
        return dataset.task, summary
