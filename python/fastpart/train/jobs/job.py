"""The job of the workers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ..options import TrainOptions
from ..registry import loaded
from ..runs.history import History
from ..runs.run_folder import RunFolder
from ..scores import Task
from .loop import Report, train
from .worker import Place, Worker


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

    def work(self, history: History | None, report: Report) -> tuple[Task, dict[str, Any]]:
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
