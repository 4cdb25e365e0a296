"""The report of a training comparison: seconds and memory by partitioner."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path

from .. import _core
from ..frames import pl
from .charts import bars
from .html import cell, page_of
from .pages import write_plots
from .shapes import Plot
from .svg import inline

MIB = 2**20


def write_training(table: pl.DataFrame, target: Path, name: str) -> None:
    """Write a table of :func:`fastpart.train.compare` as a page, or its plots alone. The suffix decides."""
    plots = list(plots_of(table))
    if target.suffix != ".html":
        write_plots(plots, target)
        return
    body = f'{_table(table)}<h2>By partitioner</h2>\n<div class="plots">{"".join(map(inline, plots))}</div>\n'
    _core.write_file(target, page_of(f"Training over partitions of {name}", body).encode(errors="replace"))


def plots_of(table: pl.DataFrame) -> Iterable[Plot]:
    """Plot the seconds of an epoch and the memory of the largest worker, for each method that trains over parts."""
    over_parts = table.filter(pl.col("partitioner").is_not_null())
    for (method,), rows in over_parts.group_by("method", maintain_order=True):
        peak = rows["peak_bytes"].null_count() == 0
        memory, label = ("peak_bytes", "peak memory") if peak else ("worker_bytes", "memory")
        for column, words, unit, digits in (
            ("seconds_per_epoch", "seconds per epoch", 1, 3),
            (memory, f"{label} of a worker, MiB", MIB, 1),
        ):
            known = rows.select("partitioner", "k", column).drop_nulls()
            values = {(name, k): value / unit for name, k, value in known.rows()}
            if values:
                yield bars(f"{method}: {words}", values, sorted({k for _, k in values}), 0.0, digits)


def _table(table: pl.DataFrame) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell(name, value))}</td>' for name, value in row.items())}</tr>\n"
        for row in table.rows(named=True)
    )
    return f'<div class="wide"><table>\n<tr>{head}</tr>\n{body}</table></div>\n'
