"""The process of the user while other processes train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..core.parameters import StrPath
from ..runtime.watch import Supervisor
from .history import History
from .keywords import OnEpoch
from .run_folder import RunFolder, claimed
from .scores import Task
from .trained import TrainedModel


def output_of(group: Supervisor, out: StrPath | None, resume: bool, overwrite: bool) -> RunFolder:
    """Return the folder of the history: that of the user, or a temporary one."""
    folder = claimed(out, resume, overwrite)
    if folder is None:
        folder = RunFolder(group.folder / "output", temporary=True)
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
    task, scores = Task(**result["task"]), result["summary"]
    trained = TrainedModel.of(history.method, task, history.reread(), {**scores, **(summary or {})})
    history.finish(vars(task), trained.summary)
    temporary = history.folder is not None and history.folder.temporary
    return replace(trained, out=None) if temporary else trained
