"""What the process of the user does while others train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import parameters
from ..errors import ParameterError
from ..parameters import Progress, StrPath
from .history import History
from .scores import Task
from .supervisor import Supervisor
from .trained import Trained


def output_of(group: Supervisor, out: StrPath | None, resume: bool) -> Path:
    """Return where the history is kept: the folder of the user, or one that goes with the processes."""
    if out is not None:
        return parameters.path("out", out)
    if resume:
        raise ParameterError("resume: there is no out= to resume from")
    return group.folder / "output"


def follow(
    group: Supervisor, history: History, progress: Progress | None, summary: Mapping[str, Any] | None = None
) -> Trained:
    """Listen until all are done, and return what rank 0 kept in the output of ``history``; ``summary`` are added."""
    result: dict[str, Any] = {}
    for _, kind, content in group.messages():
        if kind == "epoch" and progress is not None:
            progress("epoch", content["epoch"] + 1, history.options.epochs)
        elif kind == "result":
            result = content
    task, scores = Task(**result["task"]), result["summary"]
    trained = Trained.of(history.method, task, history.reread(), {**scores, **(summary or {})})
    passing = history.out is not None and history.out.is_relative_to(group.folder)
    return replace(trained, out=None) if passing else trained
