"""Labels beside points that do not hide each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from .shapes import SIZE, Line, Shape, Text, text_width

AWAY = 8.0
"""Pixels from a point to its label."""


class Box(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Box) -> float:
        """Return the area of the intersection."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(width, 0.0) * max(height, 0.0)

    def outside(self, frame: Box) -> float:
        """Return the area outside a frame."""
        area = (self.right - self.left) * (self.bottom - self.top)
        return area - self.overlap(frame)


def labelled(points: Sequence[tuple[float, float, str]], frame: Box) -> list[Shape]:
    """Return a label for each point (x, y, name) at the nearest free place, with a line if that is far away."""
    taken = [Box(x - 4, y - 4, x + 4, y + 4) for x, y, _ in points]
    shapes: list[Shape] = []
    for x, y, name in sorted(points, key=lambda point: point[1]):

        def cost(
            place: tuple[float, float, Literal["start", "end"]], width: float = text_width(name)
        ) -> float:
            box = _box(*place, width)
            return sum(map(box.overlap, taken)) + 10 * box.outside(frame)

        best = min(_places(x, y), key=cost)  # the first of those that cost the same
        taken.append(_box(*best, text_width(name)))
        if abs(best[1] - y) > 1.5 * SIZE:
            shapes.append(Line(x, y, best[0], best[1] - SIZE / 3, "faint", thick=0.75))
        shapes.append(Text(best[0], best[1], name, best[2]))
    return shapes


def _places(x: float, y: float) -> Iterator[tuple[float, float, Literal["start", "end"]]]:
    """Yield baselines around a point, near ones first."""
    for step in range(24):
        for sign in (1, -1) if step else (1,):
            below = y + SIZE / 3 + sign * step * SIZE / 2
            yield x + AWAY, below, "start"
            yield x - AWAY, below, "end"


def _box(x: float, y: float, anchor: str, width: float) -> Box:
    left = x if anchor == "start" else x - width
    return Box(left, y - SIZE, left + width, y + SIZE / 4)
