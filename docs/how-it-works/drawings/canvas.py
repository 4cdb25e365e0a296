"""A drawing as SVG: boxes, dots, arrows and text, in colours that follow light and dark.

A drawing is 440 units wide, and no letter is smaller than 16 of them. So on a phone of 360 pixels, whose column
has about 312, no text is smaller than 11 pixels. It brings its own paper, and can be read on any page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path

WIDTH = 440
LINE = 21
"""Units from one line of text to the next."""

COLOURS = {
    "ink": ("#1d2733", "#e4e9ee"),
    "faint": ("#566372", "#a3b0bd"),
    "rule": ("#aab4bf", "#55616e"),
    "paper": ("#ffffff", "#161b21"),
    "plain": ("#eef1f4", "#262e37"),
    "cap": ("#b5301f", "#ef7d6f"),
    "part0": ("#a9c6e2", "#2f5c88"),
    "part1": ("#e9cf98", "#7c5b22"),
    "part2": ("#b3d6b5", "#2f6b3b"),
    "part3": ("#e5b9bb", "#80414a"),
}
"""Each colour on light paper and on dark."""

Point = tuple[float, float]


def _style() -> str:
    def variables(index: int) -> str:
        return ";".join(f"--{name}:{both[index]}" for name, both in COLOURS.items())

    classes = "".join(
        f".{name}{{fill:var(--{name})}}.line-{name}{{stroke:var(--{name})}}" for name in COLOURS
    )
    return (
        f":root{{{variables(0)}}}@media(prefers-color-scheme:dark){{:root{{{variables(1)}}}}}"
        "text{font:16px system-ui,sans-serif;fill:var(--ink)}text.strong{font-weight:600}"
        "text.mono{font-family:monospace}"
        f"{classes}text.faint{{fill:var(--faint)}}text.cap{{fill:var(--cap)}}"
        ".stroke{fill:none;stroke-width:1.5}.bold{stroke-width:3}.dashed{stroke-dasharray:5 4}"
    )


class Drawing:
    """A drawing of a given height. ``title`` is what screen readers say."""

    def __init__(self, height: float, title: str) -> None:
        self._height, self._title = height, title
        self._items = [f'<rect width="{WIDTH}" height="{height:g}" rx="8" class="paper"/>']

    def text(self, x: float, y: float, text: str, style: str = "", anchor: str = "start") -> None:
        """Write lines of text, the first on the base line ``y``."""
        for index, line in enumerate(text.split("\n")):
            place = f'x="{x:g}" y="{y + LINE * index:g}" text-anchor="{anchor}"'
            self._items.append(f'<text {place} class="{style}">{escape(line)}</text>')

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str = "plain",
        edge: str = "rule",
        dashed: bool = False,
    ) -> None:
        """Draw a box."""
        kind = " dashed" if dashed else ""
        self._items.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" '
            f'class="{fill} line-{edge}{kind}" stroke-width="1.5"/>'
        )

    def label(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        text: str,
        fill: str = "plain",
        style: str = "",
        dashed: bool = False,
    ) -> None:
        """Draw a box with text in its middle."""
        self.box(x, y, width, height, fill, "faint" if dashed else "rule", dashed)
        lines = text.count("\n")
        self.text(x + width / 2, y + height / 2 + 5.5 - LINE * lines / 2, text, style, "middle")

    def cells(self, x: float, y: float, side: float, texts: Sequence[str], fills: Sequence[str]) -> None:
        """Draw a row of cells."""
        for index, (text, fill) in enumerate(zip(texts, fills, strict=True)):
            self.label(x + side * index, y, side, 28, text, fill)

    def dot(
        self, at: Point, radius: float, fill: str, text: str = "", edge: str = "faint", dashed: bool = False
    ) -> None:
        """Draw a vertex."""
        kind = " dashed" if dashed else ""
        place = f'cx="{at[0]:g}" cy="{at[1]:g}" r="{radius:g}"'
        self._items.append(f'<circle {place} class="{fill} line-{edge}{kind}" stroke-width="1.5"/>')
        if text:
            self.text(at[0], at[1] + 5.5, text, "", "middle")

    def line(self, points: Sequence[Point], edge: str = "rule", style: str = "") -> None:
        """Draw a line through points."""
        path = " ".join(f"{x:.5g},{y:.5g}" for x, y in points)
        self._items.append(
            f'<polyline points="{path}" class="stroke line-{edge} {style}" style="fill:none"/>'
        )

    def arrow(
        self, points: Sequence[Point], edge: str = "faint", style: str = "", both: bool = False
    ) -> None:
        """Draw a line with a head at its end, or at both ends."""
        self.line(points, edge, style)
        self._head(points[-2], points[-1], edge)
        if both:
            self._head(points[1], points[0], edge)

    def _head(self, before: Point, at: Point, colour: str) -> None:
        angle = math.atan2(at[1] - before[1], at[0] - before[0])
        corners = [at] + [
            (at[0] - 9 * math.cos(angle + turn), at[1] - 9 * math.sin(angle + turn)) for turn in (-0.45, 0.45)
        ]
        path = " ".join(f"{x:.5g},{y:.5g}" for x, y in corners)
        self._items.append(f'<polygon points="{path}" class="{colour}"/>')

    def save(self, name: str) -> None:
        """Write the drawing beside the pages."""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self._height:g}" '
        head += f'width="{WIDTH}" height="{self._height:g}" role="img">'
        parts = [
            head,
            f"<title>{escape(self._title)}</title>",
            f"<style>{_style()}</style>",
            *self._items,
            "</svg>",
        ]
        (Path(__file__).parent.parent / f"{name}.svg").write_text("\n".join(parts) + "\n")


def towards(one: Point, other: Point, gap: float, end: float | None = None) -> list[Point]:
    """Return the line between two dots, short of both by their radius."""
    length = math.dist(one, other)
    start, stop = gap / length, 1 - (gap if end is None else end) / length
    return [(one[0] + (other[0] - one[0]) * t, one[1] + (other[1] - one[1]) * t) for t in (start, stop)]
