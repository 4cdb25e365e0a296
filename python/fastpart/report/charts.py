"""The plots of a comparison."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..comparing import Comparison
from ..comparing.outcomes import MEASURES, TITLES, Outcome
from .labels import Box, labelled
from .shapes import SERIES, SIZE, Dot, Line, Picture, Plot, Rect, Text, number, text_width, ticks

WIDTH = 1040.0
HALF = (WIDTH - 24) / 2
HEAD = 40.0
"""Height above the first row, for the title and the numbers of the axis."""

STRIP = 20.0
"""Height of a row of strokes."""

WORDS = {
    "cut_ratio": "edge-cut ratio",
    "vertex_balance": "vertex balance",
    "edge_balance": "edge balance",
    "halo_rf": "halo replication factor",
    "rf": "replication factor",
    "replica_balance": "replica balance",
}

STRIPS: dict[str, tuple[tuple[str, str, bool], ...]] = {
    "vertices": (("vertices", "vertices", True), ("volume", "volume", False), ("halo", "halo", False)),
    "edges": (("edges", "records", True), ("replicas", "replicas", False)),
}
"""Column of the parts, its title, and whether the cap bounds it."""

_PALE, _DEEP = np.array([244.0, 247.0, 250.0]), np.array([16.0, 58.0, 110.0])


def charts_of(comparison: Comparison) -> list[tuple[str, list[Plot]]]:
    """Return the plots by heading, without empty groups."""
    groups = []
    for of in MEASURES:
        outcomes = [
            outcome
            for outcome in comparison.outcomes
            if outcome.row["of"] == of and outcome.row.get("error") is None
        ]
        numbers = sorted({outcome.row["k"] for outcome in outcomes})
        by_k = [[outcome for outcome in outcomes if outcome.row["k"] == k] for k in numbers]
        groups += [
            (f"Measures of {TITLES[of]}", list(_measures(of, outcomes, numbers))),
            (f"Quality and time of {TITLES[of]}", list(_scatters(of, by_k))),
            (f"Parts of {TITLES[of]}", list(_strips(of, by_k, comparison.graph["n"]))),
            (f"Records between the parts of {TITLES[of]}", list(_matrices(by_k))),
        ]
    return [(heading, plots) for heading, plots in groups if plots]


def _measures(of: str, outcomes: Sequence[Outcome], numbers: Sequence[int]) -> Iterable[Plot]:
    """Plot each measure as one bar per algorithm and number of parts."""
    for measure in MEASURES[of]:
        values = {
            (outcome.row["algorithm"], outcome.row["k"]): outcome.row[measure]
            for outcome in outcomes
            if outcome.row.get(measure) is not None
        }
        if values:
            yield bars(WORDS[measure], values, numbers, 0.0 if measure == "cut_ratio" else 1.0)


def bars(
    words: str, values: dict[tuple[str, int], float], numbers: Sequence[int], origin: float, digits: int = 3
) -> Plot:
    """Plot one bar per name and number of parts, from the origin to the value."""
    names = list(dict.fromkeys(name for name, _ in values))
    pitch, gap = SIZE + 2, 8.0
    row = pitch * len(numbers) + gap
    title = f"{words} (less is better)"
    plot = Plot(HALF, HEAD + row * len(names) + 4, title)
    left, right = _left(names), HALF - text_width("000.000")
    at = _axis(plot, title, left, right, origin, max(values.values()))
    if len(numbers) > 1:
        _legend(plot, numbers)
    for i, name in enumerate(names):
        top = HEAD + i * row
        plot.add(Text(left - 8, top + (row - gap) / 2 + SIZE / 3, _short(name), "end"))
        for j, k in enumerate(numbers):
            value = values.get((name, k))
            if value is None:
                continue
            y, end = top + j * pitch, max(at(value), left + 1)
            title = f"{name}, k = {k}: {words} {value:.{digits + 1}f}"
            plot.add(Rect(left, y + 1, end - left, pitch - 2, _series(j), title))
            plot.add(Text(end + 4, y + SIZE - 1, f"{value:.{digits}f}", colour="faint"))
    return plot


def _scatters(of: str, by_k: Iterable[Sequence[Outcome]]) -> Iterable[Plot]:
    """Plot cut (or replication factor) against seconds, one plot per number of parts."""
    measure = MEASURES[of][0]
    for outcomes in by_k:
        points = [
            (outcome.row["seconds"], outcome.row[measure], outcome.row["algorithm"])
            for outcome in outcomes
            if outcome.row["seconds"]
        ]
        if len(points) > 1:
            yield _scatter(f"k = {outcomes[0].row['k']}", WORDS[measure], points)


def _scatter(title: str, measure: str, points: Sequence[tuple[float, float, str]]) -> Plot:
    plot = Plot(HALF, 380.0, f"{title}: {measure} against seconds")
    frame = Box(48.0, 40.0, HALF - 20, plot.height - 44)
    low, high = (math.log10(extreme(seconds for seconds, _, _ in points)) for extreme in (min, max))
    low, high = math.floor(low - 0.1), math.ceil(high + 0.1)
    bottom, top = _spread([value for _, value, _ in points])

    def x_of(seconds: float) -> float:
        return frame.left + (math.log10(seconds) - low) / (high - low) * (frame.right - frame.left)

    def y_of(value: float) -> float:
        return frame.bottom - (value - bottom) / (top - bottom) * (frame.bottom - frame.top)

    plot.add(Text(0, 14, plot.title, bold=True))
    for exponent in range(low, high + 1):
        x = x_of(10.0**exponent)
        plot.add(Line(x, frame.top, x, frame.bottom, "grid"))
        plot.add(Text(x, frame.bottom + 16, number(10.0**exponent), "middle", "faint"))
    for value in ticks(bottom, top, 6):
        plot.add(Line(frame.left, y_of(value), frame.right, y_of(value), "grid"))
        plot.add(Text(frame.left - 6, y_of(value) + SIZE / 3, number(value), "end", "faint"))
    plot.add(Text((frame.left + frame.right) / 2, plot.height - 8, "seconds (log scale)", "middle", "faint"))
    for seconds, value, name in points:
        title = f"{name}: {measure} {value:.4f}, {number(seconds)} s"
        plot.add(Dot(x_of(seconds), y_of(value), 4, SERIES[2], title))
    plot.add(
        *labelled([(x_of(seconds), y_of(value), _short(name)) for seconds, value, name in points], frame)
    )
    return plot


def _strips(of: str, by_k: Iterable[Sequence[Outcome]], n: int) -> Iterable[Plot]:
    """Plot the size of each part relative to the mean as one stroke per part, and the cap."""
    for outcomes in by_k:
        listed = [outcome for outcome in outcomes if outcome.parts is not None]
        if not listed:
            continue
        k = outcomes[0].row["k"]
        title = f"k = {k}: size of each part relative to the mean (halo relative to n / k), cap in red"
        plot = Plot(WIDTH, 24 + HEAD + STRIP * len(listed) + 4, title)
        plot.add(Text(0, 14, title, bold=True))
        names = [outcome.row["algorithm"] for outcome in listed]
        for i, name in enumerate(names):
            plot.add(Text(_left(names) - 8, 24 + HEAD + (i + 0.5) * STRIP + SIZE / 3, _short(name), "end"))
        panels = STRIPS[of]
        width = (WIDTH - _left(names)) / len(panels)
        for i, (column, words, capped) in enumerate(panels):
            left = _left(names) + i * width
            shares = [_relative(outcome, column, n, capped) for outcome in listed]
            _strip(plot, words, left, left + width - 28, shares)
        yield plot


def _relative(outcome: Outcome, column: str, n: int, capped: bool) -> tuple[npt.NDArray[Any], float | None]:
    parts: Any = outcome.parts
    counts = parts[column].to_numpy().astype(float)
    mean = (n if column == "halo" else counts.sum()) / max(len(counts), 1) or 1.0
    cap = parts["cap"][0] if capped else None
    return counts / mean, None if cap is None else cap / mean


def _strip(
    plot: Plot, title: str, left: float, right: float, rows: Sequence[tuple[npt.NDArray[Any], float | None]]
) -> None:
    """Draw one panel. Its axis begins at 0 unless all parts hold more than half of the mean."""
    low = min(shares.min() for shares, _ in rows)
    high = max(shares.max() for shares, _ in rows)
    high = max([high, *(cap for _, cap in rows if cap is not None and cap <= 2 * high)])
    low = 0.0 if low < 0.5 else low - 0.05 * (high - low)
    top = 24 + HEAD
    at = _axis(plot, title, left, right, float(low), float(high), top)
    for i, (shares, cap) in enumerate(rows):
        y = top + i * STRIP
        plot.add(Line(left, y + STRIP / 2, right, y + STRIP / 2, "grid"))
        plot.add(*(Rect(at(share) - 0.75, y + 4, 1.5, STRIP - 8, SERIES[1]) for share in np.unique(shares)))
        if cap is not None and cap <= high:
            plot.add(Line(at(cap), y + 1, at(cap), y + STRIP - 1, "cap", thick=1.5))


def _matrices(by_k: Iterable[Sequence[Outcome]]) -> Iterable[Plot]:
    """Plot the cut matrices of each number of parts side by side, with one scale."""
    side, pitch, line = 150.0, 173.0, 196.0
    for outcomes in by_k:
        shown = [
            (outcome.row["algorithm"], outcome.matrix) for outcome in outcomes if outcome.matrix is not None
        ]
        if not shown:
            continue
        per_line = int((WIDTH + pitch - side) // pitch)
        counts = np.concatenate([matrix[matrix > 0] for _, matrix in shown])
        least, most = int(counts.min(initial=2**62)), int(counts.max(initial=0))
        scale = f"from {min(least, most):,} (light) to {most:,} (dark), log scale"
        title = f"k = {outcomes[0].row['k']}: records between parts, {scale}"
        plot = Plot(WIDTH, 24 + line * math.ceil(len(shown) / per_line), title)
        plot.add(Text(0, 14, title, bold=True))
        for i, (name, matrix) in enumerate(shown):
            x, y = i % per_line * pitch, 24 + i // per_line * line
            plot.add(Text(x, y + 16, _short(name, 24)))
            plot.add(Picture(x, y + 24, side, side, _heat(matrix, least, most), name))
        yield plot


def _heat(matrix: npt.NDArray[np.int64], least: int, most: int) -> npt.NDArray[np.uint8]:
    """Return a colour per cell. Cells without records are the palest."""
    span = math.log(most / least) if most > least else 1.0
    share = np.where(matrix > 0, 0.1 + 0.9 * np.log(np.maximum(matrix, 1) / least) / span, 0.0)
    colours: npt.NDArray[np.uint8] = np.rint(_PALE + share[:, :, None] * (_DEEP - _PALE)).astype(np.uint8)
    return colours


def _axis(
    plot: Plot, title: str, left: float, right: float, low: float, high: float, top: float = HEAD
) -> Callable[[float], float]:
    """Draw title, numbers and grid, and return the function from values to x coordinates."""
    high = high if high > low else low + 1.0

    def at(value: float) -> float:
        return left + (value - low) / (high - low) * (right - left)

    plot.add(Text(left if top > HEAD else 0, top - HEAD + 14, title, bold=True))
    for value in ticks(low, high, 4):
        plot.add(Line(at(value), top - 4, at(value), plot.height - 4, "grid"))
        plot.add(Text(at(value), top - 8, number(value), "middle", "faint"))
    return at


def _legend(plot: Plot, numbers: Sequence[int]) -> None:
    """Draw the legend of the numbers of parts at the top right."""
    x = plot.width
    for j, k in reversed(list(enumerate(numbers))):
        label = f"k = {k}"
        x -= text_width(label) + 18
        plot.add(Rect(x, 5, 10, 10, _series(j)), Text(x + 14, 14, label))


def _spread(values: Sequence[float]) -> tuple[float, float]:
    """Return limits a little wider than the values."""
    low, high = min(values), max(values)
    margin = 0.08 * (high - low) or 0.1 * abs(high) or 0.1
    return low - margin, high + margin


def _left(names: Iterable[str]) -> float:
    return max(text_width(_short(name)) for name in names) + 12


def _short(name: str, most: int = 26) -> str:
    return name if len(name) <= most else f"{name[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def _series(j: int) -> str:
    return SERIES[j % len(SERIES)]
