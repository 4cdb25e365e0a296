"""The process of the user while other processes train."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...errors import ParameterError, arg
from ...runtime.watch import Supervisor
from ..options import OnEpoch, TrainOptions
from ..runs.history import History
from ..runs.run_folder import RunFolder
from ..runs.trained import TrainedModel
from ..scores import task_of


def output_of(temporary: Path, options: TrainOptions) -> RunFolder:
    """Return the folder of the history: that of the user, or one in a temporary folder."""
    if options.out is not None:
        return RunFolder.claim(options.out, options.resume, options.overwrite)
    if options.resume:
        raise ParameterError(f"resume: needs {arg('out')}, the folder to resume from")
    if options.overwrite:
        raise ParameterError(f"overwrite: needs {arg('out')}, the folder to replace")
    folder = RunFolder(temporary / "output", temporary=True)
    folder.path.mkdir()
    return folder


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
    trained = TrainedModel.of(task, history.reread(), {**scores, **(summary or {})})
    history.finish(task.stored(), trained.summary)
    return trained
