"""Numbers and lists of numbers of some rows of a table as arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ....core.frames import pl
from . import kinds
from .pieces import Array, Mask, Piece


def scalars(piece: Piece, column: str, dtype: np.dtype[Any]) -> tuple[Array, Mask]:
    """Return the numbers of a column, and which of them are missing: null, or not a number."""
    given = piece.frame[column]
    return _converted(piece, column, given, dtype, lambda place: place)


def lists(piece: Piece, column: str, width: int, dtype: np.dtype[Any]) -> tuple[Array, Mask]:
    """Return the lists of a column as a matrix, and which of their numbers are missing."""
    given = piece.frame[column]
    if given.dtype == pl.Null:
        return np.zeros((len(given), width), dtype), np.ones((len(given), width), np.bool_)
    if given.dtype == pl.Array:
        given = given.arr.to_list()
    known = given.is_not_null().to_numpy()
    lengths = given.list.len().fill_null(0).to_numpy()
    piece.refuse(
        known & (lengths != width),
        column,
        lambda place: (
            f"a list of {lengths[place]}, where others hold {width}. Write all with the same length"
        ),
    )
    numbers, missing = np.zeros((len(given), width), dtype), np.ones((len(given), width), np.bool_)
    if known.any():
        places = np.flatnonzero(known)
        flat = given.filter(pl.Series(known)).explode()
        values, absent = _converted(piece, column, flat, dtype, lambda place: int(places[place // width]))
        numbers[known], missing[known] = values.reshape(-1, width), absent.reshape(-1, width)
    return numbers, missing


def _converted(
    piece: Piece, column: str, given: pl.Series, dtype: np.dtype[Any], row_of: Callable[[int], int]
) -> tuple[Array, Mask]:
    """Return numbers in a type, and which of them are missing. Refuse other text, and numbers too large for it."""
    values = given
    if kinds.is_text(given.dtype):
        values = given.cast(pl.String).cast(pl.Float64, strict=False)
        _refuse_first(
            piece,
            column,
            (values.is_null() & given.is_not_null()).to_numpy(),
            row_of,
            lambda place: f"{given[place]!r} is no number. Text becomes a feature by as: onehot",
        )
    missing = values.is_null()
    if values.dtype.is_float():
        missing |= values.is_nan().fill_null(False)
    if not values.dtype.is_float() and values.dtype != pl.Int8:
        values = values.cast(pl.Float64)
    exact = values.fill_null(0).to_numpy()
    with np.errstate(over="ignore"):
        numbers = exact.astype(dtype, copy=False)
    if dtype.kind == "f" and exact.dtype.kind == "f":
        _refuse_first(
            piece,
            column,
            np.isinf(numbers) & np.isfinite(exact),
            row_of,
            lambda place: f"{exact[place]} is too large for {dtype.name}",
        )
    return numbers, missing.to_numpy()


def _refuse_first(
    piece: Piece, column: str, wrong: Mask, row_of: Callable[[int], int], what: Callable[[int], str]
) -> None:
    if wrong.any():
        place = int(wrong.argmax())
        raise piece.refusal(column, row_of(place), what(place))
