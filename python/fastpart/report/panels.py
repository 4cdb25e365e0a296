"""The kinds of plots: bars, points with names, sizes of parts, matrices, curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.colors import LogNorm
from matplotlib.ticker import LogLocator

from .figures import HEAT, Panel
from .look import LIGHT, SERIES, label, number

Matrix = npt.NDArray[np.int64]
Sizes = npt.NDArray[np.float64]


def bars(
    title: str,
    values: Mapping[tuple[str, int], float],
    numbers: Sequence[int],
    origin: float,
    digits: int = 3,
    better: Literal["less", "more"] = "less",
) -> Panel:
    """Plot one bar per name and number of parts, from the origin to the value."""
    names = list(dict.fromkeys(name for name, _ in values))
    pitch = len(numbers) + 0.6

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for j, k in enumerate(numbers):
            known = [(i * pitch + j, values[name, k]) for i, name in enumerate(names) if (name, k) in values]
            places, lengths = zip(*known, strict=True)
            drawn = axes.barh(
                places,
                np.array(lengths) - origin,
                0.85,
                left=origin,
                color=LIGHT[SERIES[j % len(SERIES)]],
                label=f"k = {k}",
            )
            axes.bar_label(
                drawn, [f"{value:.{digits}f}" for value in lengths], padding=3, fontsize="small",
                color=LIGHT["faint"],
            )  # fmt: skip
        _names(axes, names, [i * pitch + (len(numbers) - 1) / 2 for i in range(len(names))], pitch / 2)
        end = max(values.values())
        axes.set_xlim(origin, origin + 1.2 * (end - origin) if end > origin else origin + 1)
        if len(numbers) > 1:
            _legend(axes)

    return Panel(
        f"{title} ({better} is better)", 0.55 + 0.15 * pitch * len(names) + 0.2 * (len(numbers) > 1), draw
    )


def scatter(title: str, measure: str, points: Sequence[tuple[float, float, str]]) -> Panel:
    """Plot points (seconds, value, name), with the names in a column beside them."""
    height = max(2.6, 0.7 + 0.17 * len(points))

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        seconds, values, _ = zip(*points, strict=True)
        axes.set_xscale("log")
        axes.set_xlim(min(seconds) / 1.5, max(seconds) * 1.5)
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if max(seconds) < 30 * min(seconds) else (1,)))
        axes.xaxis.set_major_formatter(number)
        axes.minorticks_off()
        axes.margins(y=0.08)
        axes.scatter(seconds, values, 24, color=LIGHT["series3"], zorder=3)
        axes.set(xlabel="seconds (log scale)", ylabel=measure)
        low, high = axes.get_ylim()
        rising = sorted(points, key=lambda point: point[1])
        shares = apart([(value - low) / (high - low) for _, value, _ in rising], 0.17 / (height - 0.6))
        for (x, y, name), share in zip(rising, shares, strict=True):
            axes.annotate(
                label(name, 16), (x, y), (1.05, share), textcoords="axes fraction", va="center", fontsize="small",
                annotation_clip=False, arrowprops={"arrowstyle": "-", "color": LIGHT["faint"], "linewidth": 0.5,
                            "relpos": (0, 0.5)},
            )  # fmt: skip

    return Panel(title, height, draw)


def apart(rising: Sequence[float], gap: float) -> list[float]:
    """Move rising places as little as possible (least squares) so that neighbours are at least a gap apart."""
    blocks: list[tuple[float, int]] = []  # mean and size; the means rise: pool adjacent violators
    for i, place in enumerate(rising):
        mean, size = place - i * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, count = blocks.pop()
            mean, size = (before * count + mean * size) / (count + size), count + size
        blocks.append((mean, size))
    top = max(0.0, 1 - (len(rising) - 1) * gap)
    means = [min(max(mean, 0.0), top) for mean, size in blocks for _ in range(size)]
    return [mean + i * gap for i, mean in enumerate(means)]


def strokes(title: str, rows: Sequence[tuple[str, Sizes, float | None]]) -> Panel:
    """Plot one row of strokes per name, one stroke for each size, and its cap. Sizes are relative to the mean."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        low = min(float(sizes.min()) for _, sizes, _ in rows)
        high = max(float(sizes.max()) for _, sizes, _ in rows)
        caps = [(i, cap) for i, (_, _, cap) in enumerate(rows) if cap is not None and cap <= 2 * high]
        high = max([high, *(cap for _, cap in caps)])
        low = 0.0 if low < 0.5 else low
        margin = 0.03 * (high - low) or 0.1
        for i, cap in caps:
            _ticks(axes, np.array([cap]), i, 0.45, "cap")
        for i, (_, sizes, _) in enumerate(rows):
            _ticks(axes, np.unique(np.round((sizes - low) / margin, 1) * margin + low), i, 0.32, "series2")
        axes.set_xlim(low if low == 0 else low - margin, high + margin)
        _names(axes, [name for name, _, _ in rows], range(len(rows)), 0.6)

    return Panel(title, 0.5 + 0.2 * len(rows), draw)


def _ticks(axes: Any, places: Sizes, row: int, half: float, colour: str) -> None:
    """Draw upright strokes in one row, as one path."""
    x = np.repeat(places, 3)
    y = np.tile([row - half, row + half, np.nan], len(places))
    axes.plot(x, y, color=LIGHT[colour], linewidth=1.2, solid_capstyle="butt")


def matrices(title: str, named: Sequence[tuple[str, Matrix]], columns: int = 3) -> Panel:
    """Plot cut matrices side by side, with one scale."""
    counts = np.concatenate([matrix[matrix > 0] for _, matrix in named])
    least, most = (int(counts.min()), int(counts.max())) if counts.size else (0, 0)
    rows = math.ceil(len(named) / columns)

    def draw(figure: Any) -> None:
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for axis in axes:
            axis.set_axis_off()
        for axis, (name, matrix) in zip(axes, named, strict=False):
            heat(axis, matrix, least, most)
            axis.set_title(label(name, 14), fontsize="small")

    scale = f"{least:,} (faint) to {most:,} (strong), log scale"
    return Panel(f"{title}, {scale}", 0.1 + 1.45 * rows, draw)


def heat(axes: Any, matrix: Matrix, least: int, most: int) -> Any:
    """Draw the counts of a matrix, those above 0 by their logarithm."""
    scale = LogNorm(max(least, 1) / 2, max(most, 1))
    axes.grid(False)
    return axes.imshow(np.ma.masked_equal(matrix, 0), norm=scale, cmap=HEAT, interpolation="nearest")


def curves(title: str, series: Mapping[str, Sequence[tuple[float, float]]], best: int) -> Panel:
    """Plot named curves by epoch, with a dot in the best one."""

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for (name, points), colour in zip(series.items(), ("series3", "series5"), strict=False):
            epochs, values = zip(*points, strict=True)
            marker = "o" if len(points) == 1 else None
            axes.plot(epochs, values, marker=marker, color=LIGHT[colour], label=name)
            at_best = [point for point in points if point[0] == best]
            if at_best:
                axes.plot(*at_best[0], "o", color=LIGHT[colour], markersize=5)
        axes.set_xlabel("epoch")
        axes.xaxis.get_major_locator().set_params(integer=True)
        if len(series) > 1:
            _legend(axes)

    return Panel(title, 2.4, draw)


def _names(axes: Any, names: Sequence[str], places: Sequence[float], margin: float) -> None:
    """Write the names of the rows at the left, the first at the top."""
    axes.set_yticks(places, [label(name) for name in names], color=LIGHT["text"])
    axes.set_ylim(places[-1] + margin, places[0] - margin)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.xaxis.set_major_formatter(number)
    axes.xaxis.get_major_locator().set_params(nbins=5)


def _legend(axes: Any) -> None:
    """Explain the colours above the plot."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderpad=0.2, handlelength=1.2)
