"""Polars, imported on first use. Its import takes longer than that of the whole package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import FastpartError
from .system import after_fork

__all__ = ["before_polars_threads", "pl"]

if TYPE_CHECKING:
    import polars as pl
else:

    class _Polars:
        def __getattr__(self, name: str) -> Any:
            import polars

            return getattr(polars, name)

    pl = _Polars()


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
