"""Rows of a table on their way into arrays, and the refusal of what cannot go there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ....core.frames import pl
from ....errors import GraphFormatError
from ..tables import TableReader

LEFT_OUT = 2**32 - 1
"""The vertex of a row that becomes none."""

Array = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]

Slots = npt.NDArray[np.uint32] | slice
"""The vertices or records of some rows."""

Place = Callable[[int, int], tuple[Mask | None, Slots]]
"""Takes some rows, the last ones seen excepted, and says which of them are kept, and where they go."""


@dataclass(frozen=True)
class Piece:
    """Rows of one file that are kept, and the vertices or records that they describe."""

    reader: TableReader
    number: int
    frame: pl.DataFrame
    rows: npt.NDArray[np.int64]
    """Their numbers within the file."""
    slots: Slots

    def refusal(self, column: str, place: Any, what: str) -> GraphFormatError:
        """Return the error about a row of this piece."""
        row = self.reader.place(self.number, int(self.rows[int(place)]))
        return GraphFormatError(f"{row}, column {column!r}: {what}")

    def refuse(self, wrong: Mask, column: str, what: Callable[[int], str]) -> None:
        """Refuse the first of the rows that are wrong. ``what`` says why, for a place in this piece."""
        if wrong.any():
            place = int(wrong.argmax())
            raise self.refusal(column, place, what(place))


def pieces(
    reader: TableReader, number: int, columns: Sequence[str], start: int, stop: int, size: int, place: Place
) -> Iterator[Piece]:
    """Yield the kept ones of rows start..stop of a file, at most ``size`` at a time."""
    first = start
    for batch in reader.batches(number, columns, start, stop):
        for frame in batch.iter_slices(size):
            rows = np.arange(first, first + len(frame))
            kept, slots = place(first - start, first - start + len(frame))
            first += len(frame)
            if kept is not None and not kept.all():
                frame, rows = frame.filter(pl.Series(kept)), rows[kept]
            if len(frame):
                yield Piece(reader, number, frame, rows, slots)


def at_vertices(vertices: npt.NDArray[np.uint32]) -> Place:
    """Return the places of rows that become vertices."""

    def place(start: int, stop: int) -> tuple[Mask | None, Slots]:
        given = vertices[start:stop]
        kept = given != LEFT_OUT
        return kept, given[kept]

    return place


def at_records(first: int, kept: Mask | None) -> Place:
    """Return the places of rows that become records, one after the other from ``first`` on."""
    following = first

    def place(start: int, stop: int) -> tuple[Mask | None, Slots]:
        nonlocal following
        given = None if kept is None else kept[start:stop]
        begin = following
        following += stop - start if given is None else int(given.sum())
        return given, slice(begin, following)

    return place
