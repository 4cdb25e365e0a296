"""The rows of a table in units of work: of a size that a kill may cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..tables import TableReader

ROWS = 1 << 22
"""Rows of a unit, unless a single file has more and cannot be read in slices."""

_MOST = 128
"""Units of a table, about. So the number of files that a merge opens stays small."""


@dataclass(frozen=True)
class Slice:
    """Rows of one file."""

    file: int
    start: int
    stop: int
    first: int
    """The number of its first row among all rows of the table."""

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start


@dataclass(frozen=True)
class Unit:
    """Rows that are worked on together."""

    number: int
    slices: tuple[Slice, ...]
    bytes: int
    """Bytes of input, about."""

    @property
    def first(self) -> int:
        """The number of its first row."""
        return self.slices[0].first

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(each.rows for each in self.slices)

    @property
    def name(self) -> str:
        """Its name in the journal and in names of files."""
        return f"{self.number:05}"


def units_of(reader: TableReader) -> list[Unit]:
    """Return the units of a table, from its first row to its last. They depend on its files only."""
    most = max(ROWS, -(-sum(file.rows for file in reader.files) // _MOST))
    units: list[Unit] = []
    slices: list[Slice] = []
    size = first = 0
    for number, file in enumerate(reader.files):
        step = most if reader.divisible(number) else max(file.rows, 1)
        for start in range(0, file.rows, step):
            stop = min(start + step, file.rows)
            slices.append(Slice(number, start, stop, first))
            first += stop - start
            size += file.bytes * (stop - start) // max(file.rows, 1)
            if sum(each.rows for each in slices) >= most:
                units.append(Unit(len(units), tuple(slices), size))
                slices, size = [], 0
    if slices:
        units.append(Unit(len(units), tuple(slices), size))
    return units


def groups_of(units: Sequence[Unit], most: int) -> list[list[Unit]]:
    """Return the units in groups of at most ``most`` records, or of one unit that has more."""
    groups: list[list[Unit]] = []
    for unit in units:
        if not groups or sum(each.rows for each in groups[-1]) + unit.rows > most:
            groups.append([])
        groups[-1].append(unit)
    return groups


def place(reader: TableReader, row: int) -> str:
    """Return the file and row of a row of a table, as messages show it."""
    first = 0
    for number, file in enumerate(reader.files):
        if row < first + file.rows:
            return reader.place(number, row - first)
        first += file.rows
    return f"row {row}"
