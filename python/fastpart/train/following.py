"""The process of the user while other processes train."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from .. import parameters
from ..errors import ParameterError
from ..parameters import StrPath
from .config import OnEpoch
from .history import History
from .scores import Task
from .supervisor import Supervisor
from .trained import TrainedModel


def output_of(group: Supervisor, out: StrPath | None, resume: bool) -> Path:
    """Return the folder of the history: that of the user, or a temporary one."""
    if out is not None:
        return parameters.path("out", out)
    if resume:
        raise ParameterError("resume: needs out=, the folder to resume from")
    return group.folder / "output"


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
    temporary = history.out is not None and history.out.is_relative_to(group.folder)
    return replace(trained, out=None) if temporary else trained
