"""The plots of a training: loss and validation scores by epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from ..frames import pl
from .labels import Box
from .shapes import SIZE, Dot, Line, Plot, Text, number, text_width, ticks

WIDTH, HEIGHT = 640.0, 240.0

MOST_POINTS = 500
"""Maximum number of epochs that are drawn. A longer training is thinned, since a screen shows no more."""

COLOURS = ("series3", "series5")

Points = Sequence[tuple[float, float]]


def curves_of(history: pl.DataFrame, best_epoch: int) -> list[Plot]:
    """Return the plots of a table of epochs, without empty ones."""
    accuracy, f1 = _points(history, "val_accuracy"), _points(history, "val_f1")
    scores = {"accuracy": accuracy, "micro-F1": f1} if accuracy != f1 else {"accuracy": accuracy}
    plots = {
        "loss over the training vertices": {"loss": _points(history, "loss")},
        "score over the validation vertices": scores,
    }
    return [_plot(title, series, best_epoch) for title, series in plots.items() if any(series.values())]


def _points(history: pl.DataFrame, column: str) -> Points:
    """Return the finite values of a column by epoch, thinned. The last one is kept."""
    step = math.ceil(len(history) / MOST_POINTS) or 1
    chosen = history[::-1][::step][::-1]
    rows = chosen.select("epoch", column).rows() if column in history.columns else []
    return [(epoch, value) for epoch, value in rows if value is not None and math.isfinite(value)]


def _plot(title: str, series: Mapping[str, Points], best_epoch: int) -> Plot:
    plot = Plot(WIDTH, HEIGHT, title)
    plot.add(Text(0, 14, title, bold=True))
    values = [value for points in series.values() for _, value in points]
    epochs = [epoch for points in series.values() for epoch, _ in points]
    axes = _Axes(plot, min(epochs), max(epochs), min(values), max(values))
    for points, colour in zip(series.values(), COLOURS, strict=False):
        axes.draw(points, colour)
    for (name, points), colour in zip(series.items(), COLOURS, strict=False):
        for epoch, value in points:
            if epoch == best_epoch:
                title = f"{name} {number(value)} in epoch {number(epoch)}, the best by validation"
                plot.add(Dot(*axes.at(epoch, value), 4, colour, title))
    if len(series) > 1:
        _legend(plot, list(series))
    return plot


class _Axes:
    """Numbers and grid of a plot, and the coordinates of its points."""

    def __init__(self, plot: Plot, first: float, last: float, low: float, high: float) -> None:
        margin = 0.05 * (high - low) or 0.1 * abs(high) or 0.1
        self._x, self._y = (first, max(last, first + 1)), (low - margin, high + margin)
        self._frame = Box(48.0, 28.0, plot.width - 16, plot.height - 36)
        self._plot = plot
        frame = self._frame
        for value in ticks(*self._y, 5):
            _, y = self.at(first, value)
            plot.add(Line(frame.left, y, frame.right, y, "grid"))
            plot.add(Text(frame.left - 6, y + SIZE / 3, number(value), "end", "faint"))
        for epoch in ticks(*self._x, 8):
            if epoch == int(epoch):
                x, _ = self.at(epoch, low)
                plot.add(Text(x, frame.bottom + 16, number(epoch), "middle", "faint"))
        plot.add(Text((frame.left + frame.right) / 2, plot.height - 6, "epoch", "middle", "faint"))

    def at(self, epoch: float, value: float) -> tuple[float, float]:
        """Return the pixel of a value."""
        (first, last), (low, high), frame = self._x, self._y, self._frame
        x = frame.left + (epoch - first) / (last - first) * (frame.right - frame.left)
        return x, frame.bottom - (value - low) / (high - low) * (frame.bottom - frame.top)

    def draw(self, points: Points, colour: str) -> None:
        """Draw a line through the points, or a dot for a single one."""
        places = [self.at(*point) for point in points]
        for start, end in pairwise(places):
            self._plot.add(Line(*start, *end, colour, thick=1.5))
        if len(places) == 1:
            self._plot.add(Dot(*places[0], 3, colour))


def _legend(plot: Plot, names: Sequence[str]) -> None:
    """Draw the legend of the lines at the top right."""
    x = plot.width - 16
    for name, colour in zip(reversed(names), reversed(COLOURS[: len(names)]), strict=True):
        x -= text_width(name) + 24
        plot.add(Line(x, 10, x + 16, 10, colour, thick=2), Text(x + 20, 14, name))
