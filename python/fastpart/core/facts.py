"""Dicts of facts that print as aligned tables, and show as tables in notebooks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape
from typing import Any, NamedTuple

from .parameters import one_line
from .protocols import MOST_ROWS, html_table

_GAP = "  "


class Table(NamedTuple):
    """A table of text. Columns are aligned to the right, but for those in ``left``."""

    title: str
    columns: Sequence[str]
    """No names: the table is a list of names and values."""
    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)
    bold: Collection[tuple[int, int]] = ()
    """The cells to stress in a text with fonts, by row and column."""
    breaks: Collection[int] = ()
    """The rows that begin a further group."""

    def __str__(self) -> str:
        lines = [self.columns, *self.rows] if self.columns else self.rows
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            _GAP.join(
                cell.ljust(width) if place in self.left else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([*([self.title] if self.title else []), *text])

    @property
    def html(self) -> str:
        """The table for a notebook."""
        return (f"<p>{escape(self.title)}</p>" if self.title else "") + html_table(self.columns, self.rows)


class Facts(dict[str, Any]):
    """Facts by name: a dict, whose text is a few tables."""

    def _tables(self) -> list[Table]:
        """Return the tables that show the facts."""
        return [listed((name, str(value)) for name, value in self.items())]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._tables()))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<div>{''.join(table.html for table in self._tables())}</div>"


def listed(named: Iterable[tuple[str, str]], title: str = "") -> Table:
    """Return a list of names and values."""
    return Table(title, (), [*named], left=(0, 1))


def side_by_side(title: str, columns: tuple[str, str], rows: Sequence[tuple[str, str]], times: int) -> Table:
    """Return a long table of two columns in ``times`` as many. It goes on at the top of the next two."""
    height = max(-(-len(rows) // times), 1)
    filled = [*rows, *[("", "")] * (-len(rows) % height)]
    groups = [filled[start : start + height] for start in range(0, len(filled), height)]
    lines = [[cell for pair in line for cell in pair] for line in zip(*groups, strict=True)]
    return Table(title, columns * len(groups), lines, range(0, 2 * len(groups), 2))


def shortened(rows: Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
    """Return the first rows of a long table, and how many more there are."""
    if len(rows) <= MOST_ROWS:
        return rows
    return [*rows[:MOST_ROWS], (f"... {len(rows) - MOST_ROWS:,} more", *[""] * (len(rows[0]) - 1))]


def name_of(text: object, most: int = 20) -> str:
    """Return a name of the user's as a cell."""
    return one_line(text, most)
