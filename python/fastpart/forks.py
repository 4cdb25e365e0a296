"""Polars in forked processes: its threads do not survive a fork, and waiting for them would never end."""

from __future__ import annotations

import os

from .errors import FastpartError


class _State:
    used = False
    """Whether something here made Polars start its threads."""
    lost = False
    """Whether this process was forked from one where that had happened."""


def before_polars_threads(what: str) -> None:
    """Call before whatever makes Polars start threads; raises where they cannot run."""
    if _State.lost:
        raise FastpartError(
            f"{what}: this process was forked from one that had used Polars, whose threads it lacks; start workers by "
            "'spawn' (multiprocessing.set_start_method), or save as .npy"
        )
    _State.used = True


def _forked() -> None:
    _State.lost |= _State.used


os.register_at_fork(after_in_child=_forked)
