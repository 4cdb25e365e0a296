"""The plots of trainings: loss and scores by epoch, seconds and memory by partitioner."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..frames import pl
from ..parameters import StrPath
from .figures import Figure, Panel, figure_of, plotted
from .pages import Table, cell, write_page
from .panels import bars, curves

MIB = 2**20


def plot_history(history: pl.DataFrame, best_epoch: int, out: StrPath | None = None) -> Figure:
    """Plot loss and validation scores by epoch."""
    return plotted(lambda: figure_of(list(curves_of(history, best_epoch))), out)


def curves_of(history: pl.DataFrame, best_epoch: int) -> Iterable[Panel]:
    """Plot loss and scores, without empty plots."""
    accuracy, f1 = _points(history, "val_accuracy"), _points(history, "val_f1")
    scores = {"accuracy": accuracy, "micro-F1": f1} if accuracy != f1 else {"accuracy": accuracy}
    items = "vertices"
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


def write_training(table: pl.DataFrame, target: Path, name: str) -> None:
    """Write a table of :func:`fastpart.train.compare` as a page, or its plots alone. The suffix decides."""
    panels = list(panels_of(table))
    if target.suffix != ".html":
        plotted(lambda: figure_of(panels), target)
        return
    rows = [[(cell(name, value), False) for name, value in row.items()] for row in table.rows(named=True)]
    write_page(
        target,
        title=f"Training over partitions of {name}",
        tables=[Table("Methods and partitioners", table.columns, [rows])],
        groups=[("By partitioner", panels)] if panels else [],
    )


def panels_of(table: pl.DataFrame) -> Iterable[Panel]:
    """Plot the seconds of an epoch and the memory of the largest worker, for each method that trains over parts."""
    over_parts = table.filter(pl.col("partitioner").is_not_null())
    for (method,), rows in over_parts.group_by("method", maintain_order=True):
        peak = rows["peak_bytes"].null_count() == 0
        memory, words = ("peak_bytes", "peak memory") if peak else ("worker_bytes", "memory")
        for column, title, unit, digits in (
            ("seconds_per_epoch", "seconds per epoch", 1, 3),
            (memory, f"{words} of a worker, MiB", MIB, 1),
        ):
            known = rows.select("partitioner", "k", column).drop_nulls()
            values = {(name, k): value / unit for name, k, value in known.rows()}
            if values:
                yield bars(f"{method}: {title}", values, sorted({k for _, k in values}), 0.0, digits)
