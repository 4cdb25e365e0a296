"""Shapes of plots, in pixels and named colours, for SVG, PNG and HTML pages."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

SERIES = ("series1", "series2", "series3", "series4", "series5", "series6")

LIGHT = {
    "text": "#1d2733",
    "faint": "#5d6b7a",
    "grid": "#dde3e9",
    "paper": "#ffffff",
    "cap": "#c0392b",
    "series1": "#9ebcd8",
    "series2": "#4f86bd",
    "series3": "#1f4e7d",
    "series4": "#c7a76c",
    "series5": "#a06a2c",
    "series6": "#5f3b12",
}
"""Colours on white. The page also has colours for dark screens."""

DARK = LIGHT | {
    "text": "#e4e9ee",
    "faint": "#9aa7b4",
    "grid": "#333d48",
    "paper": "#161b21",
    "cap": "#ef7d6f",
    "series1": "#33587c",
    "series2": "#5a93cb",
    "series3": "#b4d4f2",
    "series4": "#7a5a2a",
    "series5": "#c1924f",
    "series6": "#ecd3a6",
}

SIZE = 11.0
"""Size of text, in pixels."""


@dataclass(frozen=True)
class Rect:
    """A filled rectangle. ``title`` is its tooltip."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    title: str = ""


@dataclass(frozen=True)
class Line:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str
    dashed: bool = False
    thick: float = 1.0


@dataclass(frozen=True)
class Dot:
    """A filled circle."""

    x: float
    y: float
    radius: float
    colour: str
    title: str = ""


@dataclass(frozen=True)
class Text:
    """One line of text. Its baseline begins, is centred, or ends at (x, y)."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    colour: str = "text"
    bold: bool = False


@dataclass(frozen=True)
class Picture:
    """Cells of colours, uint8 of shape (rows, columns, 3), without smoothing."""

    x: float
    y: float
    width: float
    height: float
    cells: npt.NDArray[np.uint8]
    title: str = ""


Shape = Rect | Line | Dot | Text | Picture


@dataclass
class Plot:
    """A plot with its size and a title."""

    width: float
    height: float
    title: str
    shapes: list[Shape] = field(default_factory=list)

    def add(self, *shapes: Shape) -> None:
        """Add shapes on top of the others."""
        self.shapes.extend(shapes)


def text_width(text: str) -> float:
    """Return an upper estimate of the width of a text."""
    return 0.6 * SIZE * len(text)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Return about ``most`` round numbers from ``low`` to ``high``."""
    if not high > low:
        return [low]
    raw = (high - low) / most
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(i * step, 12) for i in range(first, last + 1)]


def number(value: float) -> str:
    """Return a number with up to four digits, as short as possible."""
    mantissa, exponent, power = f"{value:.4g}".partition("e")
    return f"{mantissa}e{int(power)}" if exponent else mantissa
