"""Polars, imported on first use. Its import takes longer than that of the whole package."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import FastpartError
from .system import after_fork

__all__ = ["Tabular", "before_polars_threads", "identified", "pl"]

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


class Tabular(ABC):
    """The base of results that are tables."""

    @abstractmethod
    def to_frame(self) -> pl.DataFrame:
        """Return the result as a frame of Polars."""

    def to_pandas(self) -> Any:
        """Return what :meth:`to_frame` returns as a frame of pandas. It needs pandas, and no pyarrow."""
        frame = self.to_frame()
        try:
            pandas = import_module("pandas")
        except ImportError:
            raise FastpartError("to_pandas: pandas is not installed. Install it, or use to_frame()") from None
        plain = {
            each.name: each.to_numpy()
            if each.dtype.is_numeric() or each.dtype.is_temporal()
            else each.to_list()
            for each in frame.get_columns()
        }
        return pandas.DataFrame(plain, columns=frame.columns)


def identified(tables: Sequence[Any], n: int) -> pl.DataFrame:
    """Return the ids that ``n`` vertices had in tables, each an :class:`~fastpart.core.ids.IdTable`, in their order.

    The columns are ``id``, and ``type`` before it if there are several. Without tables, ids are numbers of vertices.
    """
    if not tables:
        return pl.DataFrame({"id": pl.Series(range(n), dtype=pl.Int64)})
    frames = [each.scanned().select(pl.lit(each.name).alias("type"), "id").collect() for each in tables]
    if len({frame.schema["id"] for frame in frames}) > 1:  # no column holds text and numbers
        frames = [frame.with_columns(pl.col("id").cast(pl.String)) for frame in frames]
    joined: pl.DataFrame = pl.concat(frames)
    return joined if len(frames) > 1 else joined.drop("type")
