"""What the columns of tables hold, by their Polars types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ....core.frames import pl
from ....errors import GraphFormatError
from ..tables import TableFile


def is_text(dtype: Any) -> bool:
    """Return whether a column holds text."""
    return dtype in (pl.String, pl.Categorical, pl.Enum)


def is_whole(dtype: Any) -> bool:
    """Return whether a column holds whole numbers, or false and true."""
    return bool(dtype.is_integer()) or dtype == pl.Boolean


def is_number(dtype: Any) -> bool:
    """Return whether a column holds numbers of any kind."""
    return bool(dtype.is_numeric()) or dtype == pl.Boolean


def is_list(dtype: Any) -> bool:
    """Return whether a column holds lists of numbers."""
    return dtype in (pl.List, pl.Array) and is_number(dtype.inner)


def dtype_in(file: TableFile, column: str) -> Any:
    """Return the type of a column of a file. Refuse a file without it."""
    if column not in file.dtypes:
        raise GraphFormatError(f"{file.path}: no column {column!r}. It has {', '.join(file.dtypes)}")
    return file.dtypes[column]


def kind_in_files(
    files: Sequence[TableFile],
    column: str,
    kind_of: Callable[[Any], str | None],
    valid: str,
    joined: Callable[[set[str]], str | None],
) -> str:
    """Return what a column holds in all files. Refuse types without a kind, and kinds that do not go together."""
    kinds: dict[str, TableFile] = {}
    for file in files:
        dtype = dtype_in(file, column)
        if dtype == pl.Null:
            continue  # a file in which all values are missing
        kind = kind_of(dtype)
        if kind is None:
            raise GraphFormatError(f"{file.path}: column {column!r} is {dtype}. {valid}")
        kinds.setdefault(kind, file)
    if not kinds:
        raise GraphFormatError(f"column {column!r} is empty in all files. {valid}")
    kind = joined(set(kinds))
    if kind is None:
        one, other = list(kinds.values())[:2]
        raise GraphFormatError(
            f"column {column!r} is {one.dtypes[column]} in {one.path} and {other.dtypes[column]} in {other.path}. "
            "Write both alike"
        )
    return kind


def only(kinds: set[str]) -> str | None:
    """Return the one kind of a set."""
    return next(iter(kinds)) if len(kinds) == 1 else None
