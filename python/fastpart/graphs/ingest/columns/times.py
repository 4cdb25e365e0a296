"""Times from a column of a table, as int64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ....core.frames import pl
from ....errors import GraphFormatError
from ..tables import TableReader
from . import kinds
from .arrays import blocks
from .pieces import Array, Piece
from .surveys import Fact, Survey, TextTimes, facts_of, parsed

UNKNOWN = int(np.iinfo(np.int64).min)
"""The time of a row that has none."""

UNITS = {"whole": "number", "date": "days since 1970-01-01", "stamp": "microseconds since 1970-01-01"}
"""What the numbers count, by how times are written in the table."""

_VALID = "Times are whole numbers, dates or time stamps"


class Times:
    """The column of times of a table. Whole numbers stay as they are."""

    def __init__(self, column: str, reader: TableReader, valid: str = _VALID) -> None:
        self.column, self._reader, self._valid = column, reader, valid
        self._in_types = kinds.kind_in_files(reader.files, column, _form, valid, kinds.only)

    def facts(self, number: int) -> list[Fact]:
        """Return what has to be found out about a file."""
        return [TextTimes(self.column, self._reader, number)] if self._in_types == "text" else []

    def kind(self, found: Sequence[Survey]) -> str:
        """Return how times are written in all files: "whole", "date" or "stamp"."""
        if self._in_types != "text":
            return self._in_types
        told = sorted({each for each in facts_of(found, "times", self.column) if each is not None})
        if len(told) > 1:
            raise GraphFormatError(
                f"column {self.column!r}: times are written as {' and '.join(UNITS[each] for each in told)}. Write all "
                "alike"
            )
        return told[0] if told else "whole"

    def write(self, piece: Piece, kind: str, times: npt.NDArray[np.int64]) -> None:
        """Write the times of some rows."""
        times[piece.slots] = self.of(piece, kind)

    def of(self, piece: Piece, kind: str) -> npt.NDArray[np.int64]:
        """Return the times of some rows. :data:`UNKNOWN` is a missing one."""
        given = piece.frame[self.column]
        values = parsed(given, kind) if kinds.is_text(given.dtype) else given
        if kind == "stamp":
            values = values.cast(pl.Datetime("us"))
        numbers = values.cast(pl.Int64, strict=False)
        wrong = numbers.is_null() & given.is_not_null()
        if given.dtype.is_float():  # a column of whole numbers with nulls, as pandas writes it
            unknown = given.is_nan().fill_null(True)
            wrong = (wrong | (numbers.cast(pl.Float64) != given).fill_null(False)) & ~unknown
        piece.refuse(
            wrong.to_numpy(), self.column, lambda place: f"{given[place]!r} is no time. {self._valid}"
        )
        return numbers.fill_null(UNKNOWN).to_numpy()

    def description(self, kind: str, times: Array) -> dict[str, Any]:
        """Return what the times count, and how many are missing."""
        missing = sum(int((times[rows] == UNKNOWN).sum()) for rows in blocks(times))
        return {"column": self.column, "unit": UNITS[kind], "missing": missing}


def _form(dtype: Any) -> str | None:
    if dtype.is_integer() or dtype.is_float():
        return "whole"
    if dtype == pl.Datetime:
        return "stamp"
    if dtype == pl.Date:
        return "date"
    return "text" if kinds.is_text(dtype) else None
