"""Notes, and the bar of ``progress=True``: both are said beside results.

In a notebook the bar comes by itself, for each step that takes longer than half a second.
"""

from __future__ import annotations

import logging
import sys
import threading
import warnings
from contextvars import ContextVar
from functools import cache
from typing import Any, Self

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

_LATER = 0.5
"""Seconds of a step until the bar comes for which nobody has asked."""

_TIME = "{l_bar}{bar}| {elapsed} min, {remaining} left"


class Bar:
    """A progress callback that shows the current step. tqdm draws it, and is imported by the first step."""

    def __init__(self, delay: float = 0.0) -> None:
        self._delay = delay
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
                total=total,
                desc=phase,
                leave=False,
                unit="",
                bar_format=form,
                mininterval=0.05,
                delay=self._delay,
            )
        step.update(done - step.n)

    def close(self) -> None:
        """Clear the bar."""
        if self._step is not None:
            self._step.total = self._step.n  # a notebook keeps bars of unfinished steps
            self._step.close()
            self._step = None


_INSIDE = ContextVar("fastpart.inside", default=False)
"""Whether a call of the user is under way, whose bar shows what the calls in it do."""


class Display:
    """The context of a public call, which clears its bar in the end."""

    def __enter__(self) -> Self:
        self._bar: Bar | None = None
        self._inside = _INSIDE.get()
        _INSIDE.set(True)
        return self

    def progress(self, given: Any) -> Any:
        """Return the callback for what the user gave as ``progress``. In a notebook None is a bar that comes later."""
        if given is True or (given is None and not self._inside and is_notebook()):
            given = self._bar = Bar(_LATER if given is None else 0.0)
        return given

    def __exit__(self, *_: object) -> None:
        _INSIDE.set(self._inside)
        if self._bar is not None:
            self._bar.close()


def is_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


@cache
def _tqdm() -> Any:
    """Return tqdm for the terminal or the notebook, without its thread and process lock: neither survives a fork."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a notebook without widgets has a bar of text
        from tqdm.auto import tqdm

    class Quiet(tqdm):  # type: ignore[misc]
        monitor_interval = 0

    Quiet.set_lock(threading.RLock())
    return Quiet
