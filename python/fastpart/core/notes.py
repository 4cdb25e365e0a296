"""Notes, and the bar of ``progress=True``: both are said beside results."""

from __future__ import annotations

import logging
import threading
from functools import cache
from typing import Any

from ..errors import plain

log = logging.getLogger("fastpart")


def _as_python(record: logging.LogRecord) -> bool:
    """Take the marks from a note, as from an error. ``marked`` has them, for other fronts."""
    text = record.getMessage()
    if (python := plain(text)) != text:
        record.marked, record.msg, record.args = text, python, None
    return True


log.addFilter(_as_python)


_MANY = 100_000
"""From this number of units on, the bar shows no counts. Such steps count vertices and entries together."""

_TIME = "{l_bar}{bar}| {elapsed} min, {remaining} left"


class Bar:
    """A progress callback that shows the current step. tqdm draws it, and is imported by the first step."""

    def __init__(self) -> None:
        self._phase = ""
        self._step: Any = None

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Show the progress of a step."""
        step = self._step
        if step is None or (self._phase, step.total) != (phase, total) or done < step.n:
            self.close()
            self._phase = phase
            form = _TIME if total >= _MANY else None
            step = self._step = _tqdm()(
                total=total, desc=phase, leave=False, unit="", bar_format=form, mininterval=0.05
            )
        step.update(done - step.n)

    def close(self) -> None:
        """Clear the bar."""
        if self._step is not None:
            self._step.total = self._step.n  # a notebook keeps bars of unfinished steps
            self._step.close()
            self._step = None


@cache
def _tqdm() -> Any:
    """Return tqdm for the terminal or the notebook, without its thread and process lock: neither survives a fork."""
    from tqdm.auto import tqdm

    class Quiet(tqdm):  # type: ignore[misc]
        monitor_interval = 0

    Quiet.set_lock(threading.RLock())
    return Quiet
