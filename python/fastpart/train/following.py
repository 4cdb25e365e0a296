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
    group: Supervisor, history: History, progress: Progress | None, totals: Mapping[str, Any] | None = None
) -> Trained:
    """Listen until all are done, and return what rank 0 kept in the output of ``history``; ``totals`` are added."""
    result: dict[str, Any] = {}
    for _, kind, content in group.messages():
        if kind == "epoch" and progress is not None:
            progress("epoch", content["epoch"] + 1, history.options.epochs)
        elif kind == "result":
            result = content
    task, scores = Task(**result["task"]), result["totals"]
    return Trained.of(history.method, task, history.reread(), {**scores, **(totals or {})})
