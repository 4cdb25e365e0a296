"""The plots of a comparison of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..core.parameters import StrPath
from ..measures.compare import Comparison
from ..measures.compare.outcomes import MEASURES, TITLES, Outcome, merged
from .figures import Figure, Panel, figure_of, plotted
from .panels import bars, matrices, scatter, strokes

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


def plot_comparison(comparison: Comparison, out: StrPath | None = None) -> Figure:
    """Plot quality against time, and each measure."""
    groups = [[*_scatters(comparison, of), *_measures(comparison, of)] for of in MEASURES]
    return plotted(lambda: figure_of(*groups), out)


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
            yield bars(title, values, numbers, 0.0 if measure == "cut_ratio" else 1.0)


def _scatters(comparison: Comparison, of: str) -> Iterable[Panel]:
    """Plot cut (or replication factor) against seconds, one plot per number of parts."""
    measure = MEASURES[of][0]
    for cell in _cells(comparison, of):
        points = [
            (outcome.row["seconds"], outcome.row[measure], outcome.row["algorithm"])
            for outcome in cell.outcomes
            if outcome.row.get("seconds")
        ]
        if len(points) > 1:
            yield scatter(f"{cell.title}: {WORDS[measure]} against seconds", WORDS[measure], points)


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
