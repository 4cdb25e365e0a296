"""What is found out about a file of a table before its rows are written: values, kinds of text, widths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, Protocol

from ....core.frames import pl
from ....errors import CapacityError, GraphFormatError
from ..tables import TableReader
from .kinds import is_text

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
            place = max(each.arg_max() or 0 for each in wrong.values())
            raise GraphFormatError(
                f"{self._reader.place(self._number, self._rows + place)}, column {self.column!r}: {values[place]!r} is "
                "no time, or not written like those before it. Write whole numbers, dates (2024-12-31), or time stamps "
                "(2024-12-31 23:59:59)"
            )
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
