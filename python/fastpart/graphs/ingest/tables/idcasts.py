"""Columns of ids in the types in which they are compared."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

from ....core.frames import pl
from ....core.parameters import one_line

IdKind = Literal["signed", "unsigned", "string", "binary"]
"""How ids are compared: by value as i64 or u64, or by bytes."""


_RANGES = {"signed": "-2^63 to 2^63 - 1", "unsigned": "0 to 2^64 - 1"}


@dataclass(frozen=True)
class Refusal:
    """The first id of a column that has no value of its kind."""

    row: int
    reason: str


def dtype_of(kind: IdKind) -> Any:
    """Return the Polars type of ids of a kind."""
    return {"signed": pl.Int64, "unsigned": pl.UInt64, "string": pl.String, "binary": pl.Binary}[kind]


def cast(column: pl.Series, kind: IdKind) -> pl.Series | Refusal:
    """Return the ids of a column. Nulls stay. An id that has no value of this kind is refused."""
    wanted = dtype_of(kind)
    if column.dtype == wanted:
        return column
    if column.dtype == pl.Binary and kind == "string":
        return _decoded(column)
    ids = column.cast(wanted, strict=False)
    if ids.null_count() == column.null_count():
        return ids
    row = (ids.is_null() & column.is_not_null()).arg_max() or 0
    return Refusal(row, _reason(column, row, kind))


def _decoded(column: pl.Series) -> pl.Series | Refusal:
    """Return bytes as text. Polars does not say which of them are not UTF-8."""
    with suppress(pl.exceptions.ComputeError):
        return column.cast(pl.String)
    for row, value in enumerate(column):
        try:
            (value or b"").decode()
        except UnicodeDecodeError:
            at = f"column {column.name!r}: the bytes {value[:40].hex()}"
            return Refusal(row, f"{at} are not UTF-8. Leave out `as: string`, since bytes are ids, too")
    raise AssertionError("unreachable")


def _reason(column: pl.Series, row: int, kind: IdKind) -> str:
    value = column[row]
    at = f"column {column.name!r}: {one_line(repr(value), 80)}"
    if column.dtype == pl.String:
        if value.removeprefix("-").isdecimal():
            return f"{at} is outside {_RANGES[kind]}. Read the ids as text: `as: string`"
        return f"{at} is not a whole number, but the schema says `as: int`. Correct it, or say `as: string`"
    if kind == "unsigned" and value < 0:
        return (
            f"{at} is negative, but other columns of these ids are unsigned. Use one type of whole numbers, or "
            "`as: string` everywhere"
        )
    if column.dtype.is_integer():
        return f"{at} is outside {_RANGES[kind]}. Read the ids as text: `as: string`"
    return f"{at} is no id. Use whole numbers or text"
