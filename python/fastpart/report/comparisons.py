"""The plots of comparisons of partitions and of trainings: measures, losses, scores, and methods side by side."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from ..core.frames import pl
from ..core.parameters import StrPath, flag, positive
from ..errors import ParameterError, arg
from ..measures.compare import Comparison
from ..measures.compare.analysis import checked_measure, profile_of, rows_with
from ..measures.compare.outcomes import MEASURES, TITLES, Outcome, merged
from .figures import WIDTHS, Figure, Panel, drawing, figure_of, plotted
from .panels import Point, bars, curves, dots, explain, matrices, profiles, scatter, strokes
from .text import label, marks_of, number

FONT = 8
"""Size of the text of figures for papers, in points. Names are five sixths of it."""

LINE = 0.15
"""Height of a line of a legend, in inches."""

WORDS = {
    "cut_ratio": "edge-cut ratio",
    "vertex_balance": "vertex balance",
    "edge_balance": "edge balance",
    "halo_rf": "halo replication factor",
    "rf": "replication factor",
    "replica_balance": "replica balance",
}

SIZES: dict[str, tuple[tuple[str, str, bool], ...]] = {
    "vertices": (("vertices", "vertices", True), ("volume", "volume", False), ("halo", "halo", False)),
    "edges": (("edges", "records", True), ("replicas", "replicas", False)),
}
"""Column of the parts, its title, and whether the cap bounds it."""


def plot_comparison(
    comparison: Comparison,
    out: StrPath | None = None,
    measure: str | None = None,
    profile: bool = False,
    axes: Any = None,
    width: str | float | None = None,
) -> Figure:
    """Plot quality against time, and each measure, or one measure for a paper.

    See :meth:`fastpart.typing.Comparison.plot`.
    """
    draw = _profiles if flag("profile", profile) else _dots
    if measure is None and not profile and axes is None and width is None:
        groups = [[*_scatters(comparison, of), *_measures(comparison, of)] for of in MEASURES]
        return plotted(lambda: figure_of(*groups), out)
    measure = checked_measure(comparison.outcomes, measure)
    if axes is not None:
        for name, given in (("out", out), ("width", width)):
            if given is not None:
                raise ParameterError(
                    f"{name}: the figure of {arg('ax')} is yours. Save it, and choose its size"
                )
        if not hasattr(axes, "errorbar"):
            raise TypeError(f"ax: expected axes of matplotlib, got {type(axes).__name__}")
        with drawing("matplotlib cannot draw the picture"):
            draw(comparison, measure, axes, None)
        return cast(Figure, axes.figure)
    inches = (
        WIDTHS.get(width or "column") if width is None or isinstance(width, str) else positive("width", width)
    )
    if inches is None or not 1 <= inches <= 100:
        raise ParameterError(
            f'width: {width!r} is neither "column" nor "page" nor a number of inches from 1 to 100'
        )

    def build() -> Figure:
        figure = Figure(inches, 1)
        figure.set_figheight(draw(comparison, measure, figure.subplots(), inches))
        return figure

    return plotted(build, out, FONT)


def _dots(comparison: Comparison, measure: str, axes: Any, inches: float | None) -> float:
    """Draw a row of points for each graph and k. Return a height in inches that suits it."""
    known = rows_with(comparison.outcomes, measure)
    cells: dict[str, list[Point]] = {}
    several = len(comparison.graphs) > 1
    for row in known:
        name = f"{label(row['graph'])}, k = {row['k']}" if several else f"k = {row['k']}"
        points = cells.setdefault(name, [])
        if row.get(measure) is not None:
            points.append(_point(row, measure))
    texts = _texts(known, lambda row: row.get(measure) is None)
    marks = marks_of(comparison.provenance["algorithms"])
    dots(axes, [*cells.items()], [*texts], marks)
    if measure == "seconds":
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.xaxis.set_major_formatter(number)
    axes.set_xlabel(f"{WORDS.get(measure, measure)} (less is better)")
    lines = explain(axes.figure if inches else axes, texts, marks, inches, line=False)
    return 0.6 + len(cells) * max(0.25, 0.065 * len(texts)) + lines * LINE


def _profiles(comparison: Comparison, measure: str, axes: Any, inches: float | None) -> float:
    """Draw performance profiles. Return a height in inches that suits them."""
    frame = profile_of(comparison.outcomes, measure).group_by("algorithm", maintain_order=True)
    marks = marks_of(comparison.provenance["algorithms"])
    profiles(axes, {str(name): rows.select("tau", "fraction").rows() for (name,), rows in frame}, marks)
    axes.set(
        xlabel=f"{WORDS.get(measure, measure)} within this factor of the best", ylabel="fraction of instances"
    )
    known = rows_with(comparison.outcomes, measure)
    texts = _texts(known, lambda row: row.get(measure) is None or bool(row.get("above_bound")))
    return 2.2 + explain(axes.figure if inches else axes, texts, marks, inches, line=True) * LINE


def _texts(rows: Iterable[Mapping[str, Any]], failed: Callable[[Mapping[str, Any]], bool]) -> dict[str, str]:
    """Return the text of each algorithm in a legend, with the number of instances in which it failed."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["algorithm"]] = counts.get(row["algorithm"], 0) + failed(row)
    return {name: label(name) + (f" ({count} failed)" if count else "") for name, count in counts.items()}


def groups_of(comparison: Comparison) -> Iterable[tuple[str, list[Panel]]]:
    """Yield the plots of the report by heading, without empty groups."""
    for of in MEASURES:
        for words, panels in (
            ("Quality and time", _scatters(comparison, of)),
            ("Measures", _measures(comparison, of)),
            ("Sizes of the parts", _sizes(comparison, of)),
            ("Records between the parts", _matrices(comparison, of)),
        ):
            known = list(panels)
            if known:
                yield f"{words}: {TITLES[of]}", known


class Cell(NamedTuple):
    """The outcomes with a partition of a graph, for one number of parts."""

    k: int
    n: int
    graph: str
    outcomes: list[Outcome]

    @property
    def title(self) -> str:
        """The graph, if there are several, and the number of parts."""
        return f"{self.graph}, k = {self.k}" if self.graph else f"k = {self.k}"


def _cells(comparison: Comparison, of: str) -> list[Cell]:
    """Return the outcomes over all seeds, by graph and number of parts."""
    found = [
        each for each in merged(comparison.outcomes) if each.row["of"] == of and not each.row.get("error")
    ]
    cells = []
    for graph in comparison.graphs:
        mine = [outcome for outcome in found if outcome.row["graph"] == graph["name"]]
        name = graph["name"] if len(comparison.graphs) > 1 else ""
        for k in sorted({outcome.row["k"] for outcome in mine}):
            cells.append(Cell(k, graph["n"], name, [each for each in mine if each.row["k"] == k]))
    return cells


def _measures(comparison: Comparison, of: str) -> Iterable[Panel]:
    """Plot each measure of each graph as one bar per algorithm and number of parts."""
    cells = _cells(comparison, of)
    for graph, measure in product(dict.fromkeys(cell.graph for cell in cells), MEASURES[of]):
        values = {
            (outcome.row["algorithm"], cell.k): outcome.row[measure]
            for cell in cells
            for outcome in cell.outcomes
            if cell.graph == graph and outcome.row.get(measure) is not None
        }
        if values:
            numbers = sorted({k for _, k in values})
            title = f"{graph}: {WORDS[measure]}" if graph else WORDS[measure]
            colours = {
                name: mark.text for name, mark in marks_of(comparison.provenance["algorithms"]).items()
            }
            yield bars(title, values, numbers, colours=colours)


def _scatters(comparison: Comparison, of: str) -> Iterable[Panel]:
    """Plot cut (or replication factor) against seconds, one plot per number of parts."""
    measure, marks = MEASURES[of][0], marks_of(comparison.provenance["algorithms"])
    for cell in _cells(comparison, of):
        points = [_point(outcome.row, measure) for outcome in cell.outcomes if outcome.row.get("seconds")]
        if len(points) > 1:
            yield scatter(f"{cell.title}: {WORDS[measure]} against seconds", WORDS[measure], points, marks)


def _point(row: Mapping[str, Any], measure: str) -> Point:
    return Point(
        row["algorithm"], row[measure], row.get(f"{measure}_sd"), row.get("seconds") or 0.0, row.get("seconds_sd"),
        bool(row.get("above_bound")),
    )  # fmt: skip


def _sizes(comparison: Comparison, of: str) -> Iterable[Panel]:
    """Plot the size of each part relative to the mean."""
    for cell in _cells(comparison, of):
        listed = [outcome for outcome in cell.outcomes if outcome.parts is not None]
        for column, words, capped in SIZES[of] if listed else ():
            mean = "n / k" if column == "halo" else "the mean"
            title = f"{cell.title}: {words} of each part relative to {mean}{', cap in red' if capped else ''}"
            rows = [(each.row["algorithm"], *_relative(each, column, cell.n, capped)) for each in listed]
            yield strokes(title, rows)


def _relative(outcome: Outcome, column: str, n: int, capped: bool) -> tuple[npt.NDArray[Any], float | None]:
    parts: Any = outcome.parts
    counts = parts[column].to_numpy().astype(float)
    mean = (n if column == "halo" else counts.sum()) / max(len(counts), 1) or 1.0
    cap = parts["cap"][0] if capped else None
    return counts / mean, None if cap is None else cap / mean


def _matrices(comparison: Comparison, of: str) -> Iterable[Panel]:
    """Plot the cut matrices of each number of parts side by side."""
    for cell in _cells(comparison, of):
        known: Sequence[tuple[str, npt.NDArray[np.int64]]] = [
            (each.row["algorithm"], each.matrix) for each in cell.outcomes if each.matrix is not None
        ]
        if known:
            yield matrices(f"{cell.title}: records between parts", known)


MIB = 2**20

TRAINING_MEASURES: tuple[tuple[str, str, int, int, Literal["less", "more"]], ...] = (
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
    for column, title, unit, digits, better in TRAINING_MEASURES:
        values = {
            (method if partitioner is None else f"{method}, {partitioner}", k or numbers[0]): value / unit
            for method, partitioner, k, value in table.select("method", "partitioner", "k", column).rows()
            if value is not None and math.isfinite(value)
        }
        if values:
            yield bars(title, values, numbers, digits, better)
