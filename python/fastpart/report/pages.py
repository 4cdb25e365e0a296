"""The report of a comparison, in each format."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import _core
from ..comparing import Comparison
from .charts import charts_of
from .draw import new_figure, save_figure
from .html import page
from .shapes import LIGHT, SIZE, Dot, Line, Picture, Plot, Rect, Shape, Text
from .svg import document, stacked

DOTS_PER_INCH = 96.0
"""Resolution of a screen."""


def write_report(comparison: Comparison, target: Path) -> None:
    """Write a page, or the plots alone. The suffix decides."""
    if target.suffix == ".html":
        _core.write_file(target, page(comparison).encode(errors="replace"))
        return
    write_plots([plot for _, group in charts_of(comparison) for plot in group], target)


def write_plots(plots: Sequence[Plot], target: Path) -> None:
    """Write plots below one another into a picture. matplotlib draws all formats but SVG."""
    if target.suffix == ".svg":
        _core.write_file(target, document(plots).encode(errors="replace"))
    else:
        save_figure(_figure(stacked(plots)), target)


def _figure(plot: Plot) -> Any:
    """Return a plot as a figure of matplotlib. Its axes count pixels from the top left."""
    figure = new_figure(figsize=(plot.width / DOTS_PER_INCH, plot.height / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, plot.width), ylim=(plot.height, 0))
    axes.set_axis_off()
    axes.set_autoscale_on(False)
    for order, shape in enumerate(plot.shapes):
        _draw(axes, shape, order)
    return figure


def _draw(axes: Any, shape: Shape, order: int) -> None:
    from matplotlib.patches import Circle, Rectangle

    points = 72 / DOTS_PER_INCH
    match shape:
        case Rect(x, y, width, height, colour):
            patch = Rectangle((x, y), width, height, facecolor=LIGHT[colour], linewidth=0, zorder=order)
            axes.add_patch(patch)
        case Dot(x, y, radius, colour):
            axes.add_patch(Circle((x, y), radius, facecolor=LIGHT[colour], linewidth=0, zorder=order))
        case Line(x1, y1, x2, y2, colour, dashed, thick):
            style = "--" if dashed else "-"
            axes.plot((x1, x2), (y1, y2), style, color=LIGHT[colour], linewidth=thick * points, zorder=order)
        case Text(x, y, text, anchor, colour, bold):
            side = {"start": "left", "middle": "center", "end": "right"}[anchor]
            weight = "bold" if bold else "normal"
            axes.text(
                x, y, text, ha=side, va="baseline", size=SIZE * points, weight=weight, color=LIGHT[colour],
                zorder=order, parse_math=False,
            )  # fmt: skip
        case Picture(x, y, width, height, cells):
            extent = (x, x + width, y + height, y)
            axes.imshow(cells, extent=extent, aspect="auto", interpolation="nearest", zorder=order)
