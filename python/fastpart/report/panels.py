"""The kinds of plots: bars, points with names, sizes of parts, matrices, curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib import rcParams
from matplotlib.colors import LogNorm
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator

from .figures import HEAT, Panel
from .text import LIGHT, SERIES, Mark, label, number

Matrix = npt.NDArray[np.int64]
Sizes = npt.NDArray[np.float64]


def bars(
    title: str,
    values: Mapping[tuple[str, int], float],
    numbers: Sequence[int],
    digits: int = 3,
    better: Literal["less", "more"] = "less",
    colours: Mapping[str, str] = MappingProxyType({}),
) -> Panel:
    """Plot one bar per name and number of parts, from 0 to the value. Names may have colours."""
    names = list(dict.fromkeys(name for name, _ in values))
    pitch = len(numbers) + 0.6

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        for j, k in enumerate(numbers):
            known = [(i * pitch + j, values[name, k]) for i, name in enumerate(names) if (name, k) in values]
            places, lengths = zip(*known, strict=True)
            drawn = axes.barh(places, lengths, 0.85, color=LIGHT[SERIES[j % len(SERIES)]], label=f"k = {k}")
            texts = axes.bar_label(
                drawn, [f"{value:.{digits}f}" for value in lengths], padding=3, fontsize="small",
                color=LIGHT["faint"],
            )  # fmt: skip
            for each in (*drawn, *texts):
                each.set_in_layout(False)  # they are inside, and measuring them takes half of the time
        _names(
            axes, names, [i * pitch + (len(numbers) - 1) / 2 for i in range(len(names))], pitch / 2, colours
        )
        axes.set_xlim(0, 1.2 * max(values.values()) or 1)
        if len(numbers) > 1:
            _legend(axes)

    return Panel(
        f"{title} ({better} is better)", 0.55 + 0.15 * pitch * len(names) + 0.2 * (len(numbers) > 1), draw
    )


class Point(NamedTuple):
    """The value of an algorithm, and its deviations over the seeds. None where there is only one."""

    name: str
    value: float
    deviation: float | None = None
    seconds: float = 0.0
    seconds_deviation: float | None = None
    above_bound: bool = False


def _style(mark: Mark, size: float) -> dict[str, Any]:
    """Return the style of a marker."""
    return {
        "color": mark.colour,
        "marker": mark.marker,
        "markersize": size,
        "markeredgewidth": 0.9,
        "markerfacecolor": mark.colour if mark.filled else LIGHT["paper"],
    }


def _dot(axes: Any, x: float, y: float, mark: Mark, across: float | None, up: float | None = None) -> None:
    """Draw a point with its error bars."""
    if across is None and up is None:
        axes.plot(x, y, zorder=3, **_style(mark, 4.5))  # several times as fast
    else:
        axes.errorbar(x, y, up, across, elinewidth=0.8, capsize=1.5, zorder=3, **_style(mark, 4.5))


def dots(
    axes: Any, rows: Sequence[tuple[str, Sequence[Point]]], names: Sequence[str], marks: Mapping[str, Mark]
) -> None:
    """Plot a row of points, one for each of the names, below one another so that none hides another."""
    for place, (_, points) in enumerate(rows):
        for point in points:
            y = place + (names.index(point.name) - (len(names) - 1) / 2) * 0.75 / len(names)
            _dot(axes, point.value, y, marks[point.name], point.deviation)
            if point.above_bound:
                axes.annotate("*", (point.value, y), (4, 0), textcoords="offset points", va="center")
    axes.set_yticks(range(len(rows)), [name for name, _ in rows], color=LIGHT["text"])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.set_yticks(np.arange(len(rows) - 1) + 0.5, minor=True)
    axes.tick_params(axis="y", which="minor", length=0)
    axes.grid(False, axis="y")
    axes.grid(True, axis="y", which="minor", color=LIGHT["grid"])


def profiles(
    axes: Any, curves_: Mapping[str, Sequence[tuple[float, float]]], marks: Mapping[str, Mark]
) -> None:
    """Plot performance profiles: steps of (factor, fraction) for each algorithm."""
    last = max(factor for points in curves_.values() for factor, _ in points)
    end = 1 + 1.08 * (last - 1) if last > 1 else 2.0
    for name, points in curves_.items():
        factors, fractions = zip(*points, (end, points[-1][1]), strict=True)
        axes.plot(
            factors, fractions, drawstyle="steps-post", linestyle=marks[name].line, linewidth=1.2, clip_on=False,
            markevery=[place for place, (_, fraction) in enumerate(points) if fraction], **_style(marks[name], 3.5),
        )  # fmt: skip
    if last > 3:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(
            LogLocator(subs=(1, 1.5, 2, 3, 5) if last < 20 else (1, 2, 5) if last < 500 else (1,))
        )
        axes.minorticks_off()
    axes.xaxis.set_major_formatter(number)
    axes.set(xlim=(1, end), ylim=(0, 1.02))


def explain(
    place: Any, texts: Mapping[str, str], marks: Mapping[str, Mark], inches: float | None, line: bool
) -> int:
    """Explain the marks: above a figure of a width in inches, or inside axes. Return the number of lines."""
    handles = [
        Line2D([], [], linestyle=marks[name].line if line else "", label=text, **_style(marks[name], 4.5))
        for name, text in texts.items()
    ]
    if inches is None:
        place.legend(handles=handles)
        return 0
    letters = max(map(len, texts.values()))
    columns = max(1, min(4, len(texts), int(inches / ((0.55 * letters + 5) * rcParams["font.size"] / 86))))
    place.legend(
        handles=handles,
        loc="outside upper center",
        ncols=columns,
        borderpad=0.2,
        handlelength=2 if line else 1,
    )
    return math.ceil(len(texts) / columns)


def scatter(title: str, measure: str, points: Sequence[Point], marks: Mapping[str, Mark]) -> Panel:
    """Plot a measure against the seconds, with the names in a column beside the points."""
    height = max(2.6, 0.7 + 0.17 * len(points))

    def draw(figure: Any) -> None:
        axes = figure.subplots()
        seconds = [point.seconds for point in points]
        axes.set_xscale("log")
        low, high = min(seconds) / 1.6, 1.6 * max(seconds)  # between which there is a 1, a 2 or a 5
        axes.set_xlim(low, high)
        axes.set_xticks(round_numbers(low, high))
        axes.xaxis.set_major_formatter(number)
        axes.minorticks_off()
        axes.margins(y=0.08)
        for point in points:
            across = (
                None if point.seconds_deviation is None else min(point.seconds_deviation, 0.9 * point.seconds)
            )
            _dot(axes, point.seconds, point.value, marks[point.name], across, point.deviation)
        axes.set(xlabel="seconds (log scale)", ylabel=measure)
        low, high = axes.get_ylim()
        rising = sorted(points, key=lambda point: point.value)
        shares = apart([(point.value - low) / (high - low) for point in rising], 0.17 / (height - 0.6))
        for (name, value, _, x, *_), share in zip(rising, shares, strict=True):
            axes.annotate(
                label(name, 16), (x, value), (1.05, share), textcoords="axes fraction", va="center", fontsize="small",
                color=marks[name].text,
                annotation_clip=False, arrowprops={"arrowstyle": "-", "color": LIGHT["faint"], "linewidth": 0.5,
                            "relpos": (0, 0.5)},
            )  # fmt: skip

    return Panel(title, height, draw)


def round_numbers(low: float, high: float) -> list[float]:
    """Return round numbers of a log scale, as many as a panel has room for."""
    room = 0.25 * math.log10(high / low)  # of a number, in decades, with two inches for all of them
    digits = (1, 2, 5) if room < math.log10(2) else (1, 3) if room < math.log10(3) else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1, math.ceil(max(room, 1)))
    numbers = [digit * 10.0**power for power in powers for digit in digits]
    return [each for each in numbers if low <= each <= high]


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
        axes = figure.subplots(rows, columns, squeeze=False, gridspec_kw={"wspace": 0.08}).ravel()
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


def _names(
    axes: Any,
    names: Sequence[str],
    places: Sequence[float],
    margin: float,
    colours: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the names of the rows at the left, the first at the top."""
    axes.set_yticks(places, [label(name) for name in names], color=LIGHT["text"])
    for text, name in zip(axes.get_yticklabels() if colours else (), names, strict=False):
        text.set_color(colours[name])
    axes.set_ylim(places[-1] + margin, places[0] - margin)
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")
    axes.xaxis.set_major_formatter(number)
    axes.xaxis.get_major_locator().set_params(nbins=5)


def _legend(axes: Any) -> None:
    """Explain the colours above the plot."""
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderpad=0.2, handlelength=1.2)
