"""The plots of a comparison of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.parameters import StrPath
from ..measures.compare import Comparison
from ..measures.compare.outcomes import MEASURES, TITLES, Outcome
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


def _by_k(comparison: Comparison, of: str) -> list[tuple[int, list[Outcome]]]:
    """Return the outcomes with a partition by number of parts."""
    outcomes = [each for each in comparison.outcomes if each.row["of"] == of and not each.row.get("error")]
    numbers = sorted({outcome.row["k"] for outcome in outcomes})
    return [(k, [outcome for outcome in outcomes if outcome.row["k"] == k]) for k in numbers]


def _measures(comparison: Comparison, of: str) -> Iterable[Panel]:
    """Plot each measure as one bar per algorithm and number of parts."""
    by_k = _by_k(comparison, of)
    for measure in MEASURES[of]:
        values = {
            (outcome.row["algorithm"], k): outcome.row[measure]
            for k, outcomes in by_k
            for outcome in outcomes
            if outcome.row.get(measure) is not None
        }
        if values:
            numbers = sorted({k for _, k in values})
            yield bars(WORDS[measure], values, numbers, 0.0 if measure == "cut_ratio" else 1.0)


def _scatters(comparison: Comparison, of: str) -> Iterable[Panel]:
    """Plot cut (or replication factor) against seconds, one plot per number of parts."""
    measure = MEASURES[of][0]
    for k, outcomes in _by_k(comparison, of):
        points = [
            (outcome.row["seconds"], outcome.row[measure], outcome.row["algorithm"])
            for outcome in outcomes
            if outcome.row.get("seconds")
        ]
        if len(points) > 1:
            yield scatter(f"k = {k}: {WORDS[measure]} against seconds", WORDS[measure], points)


def _sizes(comparison: Comparison, of: str) -> Iterable[Panel]:
    """Plot the size of each part relative to the mean."""
    for k, outcomes in _by_k(comparison, of):
        listed = [outcome for outcome in outcomes if outcome.parts is not None]
        for column, words, capped in SIZES[of] if listed else ():
            mean = "n / k" if column == "halo" else "the mean"
            title = f"k = {k}: {words} of each part relative to {mean}{', cap in red' if capped else ''}"
            rows = [
                (each.row["algorithm"], *_relative(each, column, comparison.graph["n"], capped))
                for each in listed
            ]
            yield strokes(title, rows)


def _relative(outcome: Outcome, column: str, n: int, capped: bool) -> tuple[npt.NDArray[Any], float | None]:
    parts: Any = outcome.parts
    counts = parts[column].to_numpy().astype(float)
    mean = (n if column == "halo" else counts.sum()) / max(len(counts), 1) or 1.0
    cap = parts["cap"][0] if capped else None
    return counts / mean, None if cap is None else cap / mean


def _matrices(comparison: Comparison, of: str) -> Iterable[Panel]:
    """Plot the cut matrices of each number of parts side by side."""
    for k, outcomes in _by_k(comparison, of):
        known: Sequence[tuple[str, npt.NDArray[np.int64]]] = [
            (outcome.row["algorithm"], outcome.matrix) for outcome in outcomes if outcome.matrix is not None
        ]
        if known:
            yield matrices(f"k = {k}: records between parts", known)
