"""Polars in forked processes. Its threads do not survive a fork, so a child would wait for them forever."""

from __future__ import annotations

from ..errors import FastpartError
from .system import after_fork


class _State:
    used = False
    """Whether this process has started the threads of Polars."""
    lost = False
    """Whether this process was forked from one that had started them."""


def before_polars_threads(what: str) -> None:
    """Raise if Polars cannot start threads in this process. Call this before Polars does so."""
    if _State.lost:
        raise FastpartError(
            f"{what}: this process was forked after Polars had started its threads, which the fork lost. Start workers "
            "by 'spawn' (multiprocessing.set_start_method), or save as .npy"
        )
    _State.used = True


def _forked() -> None:
    _State.lost |= _State.used


after_fork(_forked)
