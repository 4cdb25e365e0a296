"""Figures of matplotlib: their style, their files, and their SVG inside a page. Nothing here uses pyplot.

A matplotlib that cannot be loaded or cannot draw is a :class:`FastpartError`.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple
from xml.etree import ElementTree

import numpy as np

from .. import _core
from ..core.parameters import PICTURES, StrPath, one_line, output
from ..errors import FastpartError
from .text import LIGHT, printable


@contextmanager
def drawing(what: str) -> Iterator[None]:
    """Raise a :class:`FastpartError` for any error of matplotlib in the block."""
    try:
        yield
    except (FastpartError, MemoryError, ModuleNotFoundError):
        raise
    except Exception as error:
        reason = one_line(f"{type(error).__name__}: {error}", 300)
        raise FastpartError(
            f"{what} ({reason}). Its settings are in MPLBACKEND, MATPLOTLIBRC, MPLCONFIGDIR"
        ) from error


with drawing("matplotlib cannot be loaded"):
    import matplotlib.figure
    from matplotlib import colormaps, style
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.layout_engine import LayoutEngine
    from matplotlib.transforms import Bbox

WIDTH = 4.0
"""Width of a panel, in inches: a column of a page, or the screen of a phone."""

WIDTHS = {"column": 3.33, "page": 7.0}
"""Widths of figures for papers, in inches: of a column, and of a page with two of them."""

PAD = 0.135
"""Empty inches at the edges of a panel of a page."""

COLUMNS = 3
"""Panels beside one another in a figure."""

DOTS_PER_INCH = 200

HEAT = LinearSegmentedColormap.from_list("records", ["#2f74b508", "#2f74b5"])
"""From transparent to opaque, so that it suits light and dark paper."""

STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": LIGHT["faint"],
    "axes.grid": True,
    "axes.labelcolor": LIGHT["faint"],
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "axes.titley": 1.0,  # no axes have ticks above, so nobody has to look for them
    "figure.titlesize": "medium",
    "figure.titleweight": "bold",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": LIGHT["grid"],
    "legend.fontsize": "small",
    "legend.frameon": False,
    "pdf.fonttype": 42,  # publishers refuse fonts of type 3
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "fastpart",  # the same ids in every run
    "text.color": LIGHT["text"],
    "text.parse_math": False,  # a dollar in a name is a dollar
    "xtick.color": LIGHT["faint"],
    "xtick.labelsize": "small",
    "ytick.color": LIGHT["faint"],
    "ytick.labelsize": "small",
}

FEW_COLOURS: list[Any] = [*colormaps["tab10"](range(10))]

_VARIABLES = {colour: f"var(--{name})" for name, colour in LIGHT.items()}
_UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
_SVG = "{http://www.w3.org/2000/svg}"


@contextmanager
def _styled() -> Iterator[None]:
    """Draw in our style instead of the user's, and without warnings of letters that the font lacks."""
    with (
        drawing("matplotlib cannot draw the picture"),
        style.context(["default", STYLE]),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


class Measured(LayoutEngine):
    """A layout that measures the axes once: their texts keep the room around them, and the axes get the rest.

    The tight layout of matplotlib measures twice, the constrained one four times. That is most of the time of a page.
    """

    _adjust_compatible = True
    _colorbar_gridspec = True

    def execute(self, fig: matplotlib.figure.Figure) -> None:
        """Move the axes so that they end, with their texts, near the edges of the figure."""
        boxes = [box for axes in fig.axes if (box := axes.get_tightbbox()) is not None]
        around = Bbox.union(boxes).transformed(fig.transFigure.inverted())
        axes = Bbox.union([axes.get_position(original=True) for axes in fig.axes])
        pad = PAD / np.array(fig.get_size_inches())
        low = pad + np.maximum(np.subtract(axes.min, around.min), 0)
        high = 1 - pad - np.maximum(np.subtract(around.max, axes.max), 0)
        if (low < high).all():
            fig.subplots_adjust(left=low[0], bottom=low[1], right=high[0], top=high[1])


class Figure(matplotlib.figure.Figure):
    """A figure that notebooks show without pyplot."""

    def __init__(
        self, width: float, height: float, layout: Literal["constrained"] | LayoutEngine = "constrained"
    ) -> None:
        super().__init__(figsize=(width, height), layout=layout)

    def content(self, suffix: str, **options: Any) -> bytes:
        """Return the content of a file. It is a function of the figure."""
        with _styled():
            return self._content(suffix, **options)

    def _content(self, suffix: str, **options: Any) -> bytes:
        """Return the content of a file in the style that is set."""
        buffer = io.BytesIO()
        with self._laid_out():
            self.savefig(buffer, format=suffix, dpi=DOTS_PER_INCH, metadata=_UNDATED.get(suffix), **options)
        return buffer.getvalue()

    @contextmanager
    def _laid_out(self) -> Iterator[None]:
        """Lay the figure out, and not again in the block: ``savefig`` draws all of it to lay it out, and then anew."""
        engine, dpi = self.get_layout_engine(), self.dpi
        if engine is None or not self.axes:
            yield
            return
        try:
            self.dpi = DOTS_PER_INCH
            engine.execute(self)
            self.set_layout_engine(None)
            yield
        finally:
            self.dpi = dpi
            self.set_layout_engine(engine)

    def _repr_png_(self) -> tuple[bytes, dict[str, float]]:
        width, height = self.get_size_inches() * 96
        return self.content("png"), {"width": width, "height": height}


def colours(count: int) -> list[Any]:
    """Return a colour for each of several things."""
    return (
        FEW_COLOURS[:count] if count <= len(FEW_COLOURS) else [*colormaps["turbo"](np.linspace(0, 1, count))]
    )


class Panel(NamedTuple):
    """One plot, which is drawn when a page or a figure needs it."""

    title: str
    height: float
    draw: Callable[[Any], None]
    """Called with the figure, or a part of one."""


def plotted(build: Callable[[], Figure], out: StrPath | None, size: float | None = None) -> Figure:
    """Return the figure that a function builds. With ``out`` it is also written, atomically."""
    target = None if out is None else output(out, PICTURES)
    with _styled(), style.context({} if size is None else {"font.size": size}):
        figure = build()
    if target is not None:
        _core.write_file(target, figure.content(target.suffix[1:]))
    return figure


def figure_of(*groups: Sequence[Panel]) -> Figure:
    """Return one figure with the panels in rows. Each group begins a row. Call it from :func:`plotted`."""
    columns = min(COLUMNS, max([1, *map(len, groups)]))
    rows = [group[i : i + columns] for group in groups for i in range(0, len(group), columns)]
    heights = [max(panel.height for panel in row) + 0.3 for row in rows] or [1.0]
    figure = Figure(WIDTH * columns, sum(heights))
    places = figure.subfigures(len(heights), columns, squeeze=False, height_ratios=heights)
    for line, row in zip(places, rows, strict=False):
        for place, panel in zip(line, row, strict=False):
            place.suptitle(textwrap.fill(panel.title, 52))
            panel.draw(place)
    return figure


def inline(panels: Iterable[Panel], prefix: str) -> list[tuple[str, str]]:
    """Return title and SVG of each panel, for a page whose style sheet defines the colours as variables."""
    drawn = []
    with _styled():  # once, since it sets 300 values
        for number, panel in enumerate(panels):
            figure = Figure(WIDTH, panel.height, Measured())
            panel.draw(figure)
            svg = _for_page(figure._content("svg", transparent=True), f"{prefix}{number}-")
            svg.set("aria-label", printable(panel.title))
            drawn.append((panel.title, ElementTree.tostring(svg, encoding="unicode")))
    return drawn


def _for_page(svg: bytes, prefix: str) -> ElementTree.Element:
    """Return an SVG without name spaces and rules of its own. Its ids begin with a prefix."""
    root = ElementTree.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag == f"{_SVG}style" or child.tag.endswith("metadata"):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.removeprefix(_SVG)
        attributes = {name.rpartition("}")[2]: value for name, value in element.attrib.items()}
        element.attrib.clear()
        element.attrib.update({name: _attribute(name, value, prefix) for name, value in attributes.items()})
    root.set("role", "img")
    return root


def _attribute(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return prefix + value
    if name == "style":
        return re.sub("#[0-9a-f]{6}", lambda colour: _VARIABLES.get(colour[0], colour[0]), value)
    return re.sub(r"^#|^url\(#", lambda reference: reference[0] + prefix, value)
