"""Colours, markers and texts of pages and pictures. Nothing here needs matplotlib."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from ..measures.compare.peers import PEERS

_COLOURS = {
    "text": ("#1d2733", "#e4e9ee"),
    "faint": ("#5d6b7a", "#9aa7b4"),
    "grid": ("#dde3e9", "#333d48"),
    "paper": ("#ffffff", "#161b21"),
    "cap": ("#c0392b", "#ef7d6f"),
    "series1": ("#9ebcd8", "#33587c"),
    "series2": ("#4f86bd", "#5a93cb"),
    "series3": ("#1f4e7d", "#b4d4f2"),
    "series4": ("#c7a76c", "#7a5a2a"),
    "series5": ("#a06a2c", "#c1924f"),
    "series6": ("#5f3b12", "#ecd3a6"),
}
SERIES = [name for name in _COLOURS if name.startswith("series")]
LIGHT = {name: light for name, (light, _) in _COLOURS.items()}
DARK = {name: dark for name, (_, dark) in _COLOURS.items()}
"""The colours of figures and light pages, and the same on dark pages."""


class Mark(NamedTuple):
    """How an algorithm is drawn."""

    colour: str
    text: str
    """The colour of its name, which is dark."""
    marker: str
    filled: bool
    line: Literal["-", "--"]


SHAPES = "oDs^vPX<>p"

_MARKS: dict[str, tuple[tuple[str, ...], bool, Literal["-", "--"]]] = {
    "own": (("text",), True, "-"),
    "fastpart": (("series3", "series2", "series1"), True, "-"),
    "peer": (("series5", "series6", "series4"), False, "--"),
}
"""Colours, whether markers are filled, and the line of the user's own, of algorithms of fastpart, and of peers."""


def kind_of(algorithm: str | None) -> str:
    """Return whose an algorithm of this name is: the user's own, one of fastpart, or a peer."""
    return "own" if algorithm is None else "peer" if algorithm in PEERS else "fastpart"


def marks_of(algorithms: Mapping[str, str | None]) -> dict[str, Mark]:
    """Return a mark for each label, so that those of a kind differ in shape and shade. Values are algorithms' names."""
    marks: dict[str, Mark] = {}
    for label_, algorithm in algorithms.items():
        kind = kind_of(algorithm)
        colours, filled, line = _MARKS[kind]
        place = sum(kind_of(algorithms[other]) == kind for other in marks)
        colour = LIGHT[colours[place % len(colours)]]
        marks[label_] = Mark(colour, LIGHT[colours[0]], SHAPES[place % len(SHAPES)], filled, line)
    return marks


def label(name: str, most: int = 20) -> str:
    """Return a name as a short line that SVG can hold."""
    name = printable(name).replace("\n", " ")
    return name if len(name) <= most else f"{name[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def printable(text: object) -> str:
    """Return text for XML and HTML. Control characters and lone surrogates are replaced."""
    known = str(text).encode(errors="replace").decode()
    return "".join(
        letter if letter.isprintable() or letter == "\n" else "\N{REPLACEMENT CHARACTER}" for letter in known
    )


def number(value: float, _: object = None) -> str:
    """Return a number with up to four digits, as short as possible. Also a formatter of ticks."""
    mantissa, exponent, power = f"{value:.4g}".partition("e")
    return f"{mantissa}e{int(power)}" if exponent else mantissa
