"""What the process of the user does while others train."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..parameters import Progress
from .history import History
from .scores import Task
from .supervisor import Supervisor
from .trained import Trained


def follow(
    group: Supervisor, history: History, task: Task, progress: Progress | None, totals: Mapping[str, Any]
) -> Trained:
    """Listen until all are done, and return what rank 0 kept in the output of ``history``."""
    found: dict[str, Any] = {}
    for _, kind, content in group.messages():
        if kind == "epoch" and progress is not None:
            progress("epoch", content["epoch"] + 1, history.options.epochs)
        elif kind == "result":
            found = content["totals"]
    return Trained.of(history.method, task, history.reread(), {**found, **totals})
