"""The plots of trainings: loss and scores by epoch, and methods side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Literal

from ..core.frames import pl
from ..core.parameters import StrPath
from .figures import Figure, Panel, figure_of, plotted
from .panels import bars, curves

MIB = 2**20

MEASURES: tuple[tuple[str, str, int, int, Literal["less", "more"]], ...] = (
    ("test_accuracy", "test accuracy", 1, 4, "more"),
    ("seconds_per_epoch", "seconds per epoch", 1, 3, "less"),
    ("idle_share", "share of the time without computing", 1, 2, "less"),
    ("remote_bytes", "MiB between workers per epoch", MIB, 2, "less"),
    ("worker_bytes", "memory of the largest worker, MiB", MIB, 0, "less"),
)
"""Columns of a comparison that are plotted, with their titles, units, digits, and which end is better."""


def plot_history(history: pl.DataFrame, best_epoch: int, out: StrPath | None = None) -> Figure:
    """Plot loss and validation scores by epoch."""
    return plotted(lambda: figure_of(list(curves_of(history, best_epoch))), out)


def curves_of(history: pl.DataFrame, best_epoch: int) -> Iterable[Panel]:
    """Plot loss and scores, without empty plots."""
    accuracy, f1 = _points(history, "val_accuracy"), _points(history, "val_f1")
    scores = {"accuracy": accuracy, "micro-F1": f1} if accuracy != f1 else {"accuracy": accuracy}
    items = "vertices"
    if rmse := _points(history, "val_rmse"):
        scores = {"RMSE": rmse, "MAE": _points(history, "val_mae")}
    if mrr := _points(history, "val_mrr"):
        scores, items = {"MRR": mrr}, "edges"
    for title, series in (
        (f"loss over the training {items}", {"loss": _points(history, "loss")}),
        (f"score over the validation {items}", scores),
    ):
        known = {name: points for name, points in series.items() if points}
        if known:
            yield curves(title, known, best_epoch)


def _points(history: pl.DataFrame, column: str) -> Sequence[tuple[float, float]]:
    """Return the finite values of a column by epoch."""
    rows = history.select("epoch", column).rows() if column in history.columns else []
    return [(epoch, value) for epoch, value in rows if value is not None and math.isfinite(value)]


def plot_trainings(table: pl.DataFrame, out: StrPath) -> Figure:
    """Plot what all methods have, side by side."""
    return plotted(lambda: figure_of(list(panels_of(table))), out)


def panels_of(table: pl.DataFrame) -> Iterable[Panel]:
    """Plot what all methods have, side by side: one panel per measure, one bar per method and partitioner."""
    numbers = sorted(set(table["k"].drop_nulls())) or [0]
    for column, title, unit, digits, better in MEASURES:
        values = {
            (method if partitioner is None else f"{method}, {partitioner}", k or numbers[0]): value / unit
            for method, partitioner, k, value in table.select("method", "partitioner", "k", column).rows()
            if value is not None and math.isfinite(value)
        }
        if values:
            yield bars(title, values, numbers, digits, better)
