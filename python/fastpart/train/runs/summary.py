"""The summary of a training: the costs of its epochs, and the text that is printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ..models.scores import Task
from .baselines import told

COMPUTING = ("compute", "aggregation", "dense")
"""The steps of an epoch in which a worker computes."""

_SHOWN = 10
"""Number of epochs that are printed, the last ones."""


def costs_of(epochs: pl.DataFrame) -> dict[str, Any]:
    """Return the entries of a summary that follow from its epochs."""
    return {
        "seconds_per_epoch": epochs["seconds"].median(),
        "idle_share": _idle_share(epochs),
        "remote_bytes": _rounded(_after_first(epochs["remote_bytes"]).mean()),
        "worker_bytes": _rounded(epochs["worker_bytes"].median()),
    }


def _idle_share(epochs: pl.DataFrame) -> float | None:
    """Return the median share of an epoch without computing. A method that tells no steps always computes."""
    steps = [column for column in epochs.columns if column.endswith("_seconds")]
    computing = [column for column in steps if column.removesuffix("_seconds") in COMPUTING]
    if not steps:
        return 0.0
    shares = epochs.select(1 - pl.sum_horizontal(computing) / pl.col("seconds"))
    return shares.to_series().clip(0, 1).median()  # type: ignore[return-value]  # of floats


def _after_first(column: pl.Series) -> pl.Series:
    return column[1:] if len(column) > 1 else column


def _rounded(value: Any) -> int:
    return round(value)


def workers_of(summary: Mapping[str, Any]) -> pl.DataFrame | None:
    """Return one row per worker, if the method has this table."""
    rows = summary.get("per_worker")
    return None if rows is None else pl.DataFrame(rows)


def test_of(summary: Mapping[str, Any], name: str) -> str:
    """Return the test score for a ``repr``. A training that has not ended has none yet."""
    score = summary.get(f"test_{name}")
    return (
        "without test scores"
        if not isinstance(score, float)
        else f"test {name.replace('mrr', 'MRR').replace('rmse', 'RMSE')} {score:.4f}"
    )


def text_of(history: pl.DataFrame, task: Task, summary: Mapping[str, Any]) -> str:
    """Return the last epochs of a training, and what follows them, as text."""
    from ...report.text import table

    return f"{table(history.tail(_SHOWN))}\n\n{result_of(task, summary)}"


def result_of(task: Task, summary: Mapping[str, Any]) -> str:
    """Return the rows of the workers of a training, if there are any, and its summary, as text."""
    from ...report.text import table

    lines = [f"{name:18} {value}" for name, value in shown_summary(task, summary).items()]
    workers = workers_of(summary)
    return "\n".join([*([] if workers is None else [table(workers), ""]), *lines])


def shown_summary(task: Task, summary: Mapping[str, Any]) -> dict[str, str]:
    """Return a summary as text, without what has a table of its own."""
    known = {name: value for name, value in summary.items() if value is not None}
    known.pop("per_worker", None)
    if "baselines" in known:
        known["baselines"] = told(task, summary)
    return {name: _shown(value) for name, value in known.items()}


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(item)}" for name, item in value.items() if item is not None)
    return (
        f"{value:.4f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
    )
