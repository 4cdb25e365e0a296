"""Plots as SVG."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from html import escape

import numpy as np
import numpy.typing as npt

from .shapes import LIGHT, SIZE, Dot, Line, Picture, Plot, Rect, Shape, Text

FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', 'DejaVu Sans', sans-serif"
GAP = 24.0
"""Pixels between the plots of one file."""


def inline(plot: Plot) -> str:
    """Return a plot for a page whose style sheet defines the colours."""
    body = "".join(map(_element, plot.shapes))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(plot.width)} {_n(plot.height)}" '
        f'width="{_n(plot.width)}" height="{_n(plot.height)}" role="img" aria-label="{_safe(plot.title)}">{body}</svg>'
    )


def document(plots: Sequence[Plot]) -> str:
    """Return one file with all plots below one another, on white."""
    plot = stacked(plots)
    style = f"{style_sheet(LIGHT, ':root')} svg {{ background: #ffffff }}"
    return inline(plot).replace(">", f"><style>{style}</style>", 1) + "\n"


def stacked(plots: Sequence[Plot]) -> Plot:
    """Return one plot of several below one another."""
    whole = Plot(max((plot.width for plot in plots), default=0) + 2 * GAP, GAP, "plots")
    for plot in plots:
        whole.add(*(_moved(shape, GAP, whole.height) for shape in plot.shapes))
        whole.height += plot.height + GAP
    return whole


def style_sheet(colours: dict[str, str], where: str) -> str:
    """Return the CSS rules that define the named colours."""
    values = "; ".join(f"--{name}: {value}" for name, value in colours.items())
    return f"{where} {{ {values} }} svg text {{ font: {SIZE:g}px {FONT} }} svg .bold {{ font-weight: 600 }}"


def png(cells: npt.NDArray[np.uint8]) -> bytes:
    """Return an RGB picture as PNG."""
    rows, columns, _ = cells.shape

    def chunk(name: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )

    lines = b"".join(b"\0" + row.tobytes() for row in cells)
    header = struct.pack(">IIBBBBB", columns, rows, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(lines, 9))
        + chunk(b"IEND", b"")
    )


def _moved(shape: Shape, dx: float, dy: float) -> Shape:
    if isinstance(shape, Line):
        return replace(shape, x1=shape.x1 + dx, y1=shape.y1 + dy, x2=shape.x2 + dx, y2=shape.y2 + dy)
    return replace(shape, x=shape.x + dx, y=shape.y + dy)


def _element(shape: Shape) -> str:
    match shape:
        case Rect(x, y, width, height, colour, title):
            at = f'x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0))}" height="{_n(max(height, 0))}"'
            return _titled("rect", f'{at} style="fill: var(--{colour})"', title)
        case Dot(x, y, radius, colour, title):
            at = f'cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}"'
            return _titled("circle", f'{at} style="fill: var(--{colour})"', title)
        case Line(x1, y1, x2, y2, colour, dashed, thick):
            dash = "; stroke-dasharray: 4 3" if dashed else ""
            at = f'x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"'
            return f'<line {at} style="stroke: var(--{colour}); stroke-width: {_n(thick)}{dash}"/>'
        case Text(x, y, text, anchor, colour, bold):
            weight = ' class="bold"' if bold else ""
            at = f'x="{_n(x)}" y="{_n(y)}" text-anchor="{anchor}"'
            return f'<text {at}{weight} style="fill: var(--{colour})">{_safe(text)}</text>'
        case Picture(x, y, width, height, cells, title):
            data = base64.b64encode(png(cells)).decode()
            at = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" preserveAspectRatio="none"'
            return _titled(
                "image", f'{at} style="image-rendering: pixelated" href="data:image/png;base64,{data}"', title
            )


def _titled(tag: str, attributes: str, title: str) -> str:
    inside = f"<title>{_safe(title)}</title>" if title else ""
    return f"<{tag} {attributes}>{inside}</{tag}>" if inside else f"<{tag} {attributes}/>"


def _safe(text: str) -> str:
    """Return text for XML, with markup escaped, and control characters and lone surrogates replaced."""
    plain = text.encode(errors="replace").decode()
    return escape(
        "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in plain)
    )


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
