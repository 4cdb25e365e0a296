"""Surveys of columns before their rows are written, and the categories and times that follow from them.

Categories are the values of a column, in an order that later ingests keep. Times are int64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ....core.frames import pl
from ....core.notes import log
from ....core.parameters import one_line
from ....errors import CapacityError, GraphFormatError
from ..problems import refuse_rows
from ..tables import TableReader
from .rows import Array, Piece, blocks, is_text, kind_in_files, only

MOST_VALUES = 2**24
"""The most distinct values of a column of categories or classes. As float32, greater codes would not all differ."""

_MOST_NUMBERS = 2**16
"""The most distinct numbers of a column of text that are remembered as they are written."""

Survey = Mapping[str, Any]
"""What is known of a file, as JSON holds it: facts by their name and column."""


class Fact(Protocol):
    """Something to find out about a column, from all of its rows in a file."""

    name: str
    column: str

    def add(self, values: pl.Series) -> None:
        """Take the next rows."""

    def found(self) -> Any:
        """Return what was found, as JSON holds it."""


def surveyed(reader: TableReader, number: int, facts: Sequence[Fact]) -> dict[str, Any]:
    """Return the facts about a file, from one pass over their columns."""
    if not facts:
        return {}
    columns = sorted({fact.column for fact in facts})
    for batch in reader.batches(number, columns):
        for fact in facts:
            fact.add(batch[fact.column])
    found: dict[str, Any] = {}
    for fact in facts:
        found.setdefault(fact.name, {})[fact.column] = fact.found()
    return found


def facts_of(surveys: Iterable[Survey], name: str, column: str) -> list[Any]:
    """Return what all surveys say about a column. Those that say nothing are left out."""
    return [survey[name][column] for survey in surveys if column in survey.get(name, ())]


class Missing:
    """In how many rows of a column something is missing: a null, or a number that is none."""

    name = "missing"

    def __init__(self, column: str, *, numbers: bool) -> None:
        self.column, self._numbers, self._count = column, numbers, 0

    def add(self, values: pl.Series) -> None:
        """Take the next rows."""
        missing = values.is_null()
        if self._numbers:
            if is_text(values.dtype):
                values = values.cast(pl.String).cast(pl.Float64, strict=False)
            if values.dtype.is_float():
                missing |= values.is_nan().fill_null(False)
        if values.dtype == pl.Array:
            values = values.arr.to_list()
        dtype: Any = values.dtype
        if dtype == pl.List:
            element = pl.element().is_null()
            if self._numbers and dtype.inner.is_float():
                element = element | pl.element().is_nan()
            missing |= values.list.eval(element).list.any().fill_null(False)
        self._count += int(missing.sum())

    def found(self) -> int:
        """Return the count."""
        return self._count


class Values:
    """The distinct values of a column, or of its lists, and how often each occurs. Text, or whole numbers."""

    name = "values"

    def __init__(self, column: str) -> None:
        self.column = column
        self._counts: dict[Any, int] = {}
        self._kind: str | None = None

    def add(self, values: pl.Series) -> None:
        """Take the next rows."""
        values = elements(values)
        if values.dtype == pl.Null:
            return
        self._kind = "whole" if values.dtype.is_integer() else "text"
        values = values if self._kind == "whole" else values.cast(pl.String)
        counted = values.drop_nulls().value_counts()
        for value, number in zip(counted[values.name].to_list(), counted["count"].to_list(), strict=True):
            self._counts[value] = self._counts.get(value, 0) + number
        refuse_many(self.column, len(self._counts))

    def found(self) -> dict[str, Any]:
        """Return their kind, and each value with its count, sorted."""
        return {"kind": self._kind, "values": [list(each) for each in sorted(self._counts.items())]}


class Labels(Values):
    """The labels in a column of text: whole numbers, numbers, or names of classes.

    ``values`` is None where there are too many numbers for classes.
    """

    name = "labels"

    def __init__(self, column: str) -> None:
        super().__init__(column)
        self._whole = self._numbers = True
        self._many = False

    def add(self, values: pl.Series) -> None:
        """Take the next rows."""
        text = values.cast(pl.String).drop_nulls()
        if self._whole:
            self._whole = whole_of(text).is_not_null().all()
        if self._numbers:
            padded = text.str.contains("^[+-]?0[0-9]")  # 007 is a name
            self._numbers = (text.cast(pl.Float64, strict=False).is_not_null() & ~padded).all()
        self._many |= self._numbers and len(self._counts) > _MOST_NUMBERS
        if not self._many:
            super().add(text)

    def found(self) -> dict[str, Any]:
        """Return their kind, and each label with its count, sorted."""
        kind = "whole" if self._whole else "number" if self._numbers else "text"
        values = None if self._many else super().found()["values"]
        return {"kind": kind if values != [] else None, "values": values}


class TextTimes:
    """How the times in a column of text are written: as whole numbers, dates or time stamps."""

    name = "times"

    def __init__(self, column: str, reader: TableReader, number: int) -> None:
        self.column, self._reader, self._number = column, reader, number
        self._kinds = ["whole", "date", "stamp"]
        self._any, self._rows = False, 0

    def add(self, values: pl.Series) -> None:
        """Take the next rows. Refuse a value that is not written like those before it."""
        wrong = {kind: parsed(values, kind).is_null() & values.is_not_null() for kind in self._kinds}
        self._kinds = [kind for kind in self._kinds if not wrong[kind].any()]
        if not self._kinds:
            usual = min(wrong, key=lambda kind: wrong[kind].sum())
            places, self._kinds = wrong[usual].arg_true().to_list(), [usual]

            def error(each: int) -> GraphFormatError:
                at = self._reader.place(self._number, self._rows + places[each])
                return GraphFormatError(
                    f"{at}, column {self.column!r}: {values[places[each]]!r} is no time, or not written like those "
                    "before it. Write whole numbers, dates (2024-12-31), or time stamps (2024-12-31 23:59:59)"
                )

            rows = [self._rows + place for place in places]
            refuse_rows(self._reader, self._number, self.column, rows, error)
        self._any |= values.null_count() < len(values)
        self._rows += len(values)

    def found(self) -> str | None:
        """Return how they are written, or None if there are none."""
        return self._kinds[0] if self._any else None


def elements(values: pl.Series) -> pl.Series:
    """Return the elements of a column of lists, one after the other. Other columns stay as they are."""
    if values.dtype == pl.Array:
        values = values.arr.to_list()
    return values.filter(values.list.len() > 0).explode() if values.dtype == pl.List else values


def whole_of(text: pl.Series) -> pl.Series:
    """Return the whole numbers in text that is written as they are printed. Others, as 007, are null."""
    number = text.cast(pl.Int64, strict=False)
    return number.set(number.cast(pl.String) != text, None)


def parsed(text: pl.Series, kind: str) -> pl.Series:
    """Return the times in text as whole numbers, dates or time stamps in microseconds. Others are null."""
    text = text.cast(pl.String)
    if kind == "whole":
        return text.cast(pl.Int64, strict=False)
    if kind == "date":
        return text.str.to_date("%Y-%m-%d", strict=False)
    plain = text.str.replace("T", " ", literal=True).str.strip_suffix("Z")
    return plain.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)


def width_of(reader: TableReader, number: int, column: str) -> int | None:
    """Return the length of the first list of a column in a file. None if all of them are missing."""
    rows, start = reader.files[number].rows, 0
    for step in (1 << (10 + 2 * each) for each in count()):
        if start >= rows:
            return None
        stop = min(start + step, rows)
        for batch in reader.batches(number, [column], start, stop):
            known = batch[column].drop_nulls()
            if len(known):
                return len(known[0])
        start = stop
    return None


def merged(column: str, found: Sequence[Mapping[str, Any]]) -> tuple[str | None, dict[Any, int]]:
    """Return the kind and the counted values of all files, sorted. Refuse files of which some hold numbers."""
    kinds = {each["kind"] for each in found} - {None}
    if {"whole", "text"} <= kinds:
        raise GraphFormatError(
            f"column {column!r} holds text in some files and numbers in others. Write all alike"
        )
    counts: dict[Any, int] = {}
    for each in found:
        if each["values"] is None:
            raise GraphFormatError(f"column {column!r} holds many numbers, and text as well. Write all alike")
        for value, number in each["values"]:
            counts[value] = counts.get(value, 0) + number
    refuse_many(column, len(counts))
    return next(iter(kinds), None), dict(sorted(counts.items()))


def refuse_many(column: str, values: int) -> None:
    """Refuse more distinct values than codes."""
    if values > MOST_VALUES:
        raise CapacityError(
            f"column {column!r}: more than {MOST_VALUES:,} distinct values are too many for categories or classes. Is "
            "it a column of ids or of free text?"
        )


_NAMED = 3
"""New values that a note names."""

Codes = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Categories:
    """The values of a column. The code of a value is its place among them."""

    values: tuple[Any, ...]
    """Text or whole numbers, sorted. Those of an earlier vocabulary come first, in its order."""
    counts: tuple[int, ...]
    """How often each value occurs in the table. The fill value stands in every row that it fills."""
    unknown: int | None = None
    """How many times a value occurs that the earlier vocabulary lacks. None: there is no earlier one."""

    @property
    def slot(self) -> int:
        """The code of all values that an earlier vocabulary lacks."""
        return len(self.values)

    @property
    def content(self) -> dict[str, Any]:
        """What the file of categories says of the column."""
        return {"values": list(self.values), "counts": list(self.counts)}

    @cached_property
    def _enum(self) -> pl.Enum:
        return pl.Enum([str(each) for each in self.values])

    def code(self, value: Any) -> int:
        """Return the code of a value."""
        return int(self._codes(pl.Series([value]))[0])

    def _codes(self, values: pl.Series) -> Codes:
        """Return the code of each value. Those that are not there, and missing ones, have that of the slot."""
        told = values.cast(pl.String).cast(self._enum, strict=False)
        return told.to_physical().cast(pl.Int64).fill_null(self.slot).to_numpy()

    def of(self, piece: Piece, column: str, values: pl.Series, row_of: Callable[[int], int]) -> Codes:
        """Return the code of each value of a column. -1 is a missing value. ``row_of`` gives the row of a value."""
        known = values.is_not_null().to_numpy()
        codes = self._codes(values)
        new = known & (codes == self.slot)
        if self.unknown is None and new.any():
            place = int(new.argmax())
            raise piece.refusal(
                column, row_of(place), f"{values[place]!r} is new. The file changed, start again"
            )
        return np.where(known, codes, -1)


def categories(counts: Mapping[Any, int]) -> Categories:
    """Return the values of a column without an earlier vocabulary, sorted."""
    ordered = dict(sorted(counts.items()))
    return Categories(tuple(ordered), tuple(ordered.values()))


def kept(where: str, column: str, counts: Mapping[Any, int], vocabulary: Sequence[Any]) -> Categories:
    """Return the values of an earlier vocabulary, and say in a note which values it lacks."""
    known, new = _compared(counts, vocabulary)
    if new:
        log.info(
            "%s: column %r: %s of its values are not in the vocabulary (%s), and count as unknown",
            where,
            column,
            f"{sum(new.values()):,}",
            _listed(new),
        )
    return Categories(tuple(vocabulary), tuple(known), sum(new.values()))


def extended(where: str, column: str, counts: Mapping[Any, int], vocabulary: Sequence[Any]) -> Categories:
    """Return the classes of an earlier vocabulary, and new ones behind them, which a note names."""
    known, new = _compared(counts, vocabulary)
    if new:
        log.info(
            "%s: column %r: %s behind the %s of the vocabulary (%s)",
            where,
            column,
            f"{len(new):,} new class{'es' if len(new) != 1 else ''}",
            f"{len(vocabulary):,}",
            _listed(new),
        )
    new = dict(sorted(new.items()))
    return Categories((*vocabulary, *new), (*known, *new.values()))


def note_missing(where: str, column: str) -> None:
    """Say in a note that an earlier vocabulary has no values of a column."""
    log.info("%s: column %r is not in the vocabulary. Its values are numbered anew", where, column)


def _compared(counts: Mapping[Any, int], vocabulary: Sequence[Any]) -> tuple[list[int], dict[Any, int]]:
    """Return the counts of the values of a vocabulary, and those of all others. 5 and "5" are one value."""
    codes = {str(value): code for code, value in enumerate(vocabulary)}
    known, new = [0] * len(vocabulary), {}
    for value, times in counts.items():
        code = codes.get(str(value))
        if code is not None:
            known[code] += times
        elif times:
            new[value] = times
    return known, new


def _listed(new: Mapping[Any, int]) -> str:
    named = ", ".join(one_line(repr(value), 40) for value in sorted(new)[:_NAMED])
    return named + (f" and {len(new) - _NAMED:,} more" if len(new) > _NAMED else "")


UNKNOWN = int(np.iinfo(np.int64).min)
"""The time of a row that has none."""

UNITS = {"whole": "number", "date": "days since 1970-01-01", "stamp": "microseconds since 1970-01-01"}
"""What the numbers count, by how times are written in the table."""

_VALID = "Times are whole numbers, dates or time stamps"


class Times:
    """The column of times of a table. Whole numbers stay as they are."""

    def __init__(self, column: str, reader: TableReader, valid: str = _VALID) -> None:
        self.column, self._reader, self._valid = column, reader, valid
        self._in_types = kind_in_files(reader.files, column, _form, valid, only)

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
        values = parsed(given, kind) if is_text(given.dtype) else given
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
    return "text" if is_text(dtype) else None
