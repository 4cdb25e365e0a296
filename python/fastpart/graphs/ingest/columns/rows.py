"""Rows of a table on their way into arrays: what columns hold, the arrays, and numbers and lists of numbers.

Arrays are created sparse, written in place, and read in blocks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ....core.frames import pl
from ....core.parameters import regular
from ....core.parsing import created, mapped
from ....errors import GraphFormatError, arg
from ..problems import refuse_rows
from ..tables import TableFile, TableReader


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


Array = npt.NDArray[Any]

RESTART = f"Pass {arg('restart', True)} to begin anew"
"""What helps where a file of an earlier run is damaged."""

_BLOCK_BYTES = 8 << 20
"""What is read of an array at a time."""


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield the path of a new file, which takes the place of ``file`` once it is written and on the disk.

    What is linked to the earlier file keeps it: a graph directory may be, if its ingest was killed as it ended.
    """
    new = file.with_name(f"{file.name}.new")
    yield new
    with new.open("rb") as written:
        os.fsync(written.fileno())
    os.replace(new, file)


def create(file: Path, shape: tuple[int, ...], dtype: npt.DTypeLike) -> None:
    """Create an array of zeros, if the file does not hold one of this shape and type."""
    if _is(file, shape, np.dtype(dtype)):
        return
    with replacing(file) as new:
        if 0 in shape:
            with new.open("wb") as written:  # numpy maps no empty array
                np.save(written, np.zeros(shape, dtype))
        else:
            created(new, dtype, shape)


def _is(file: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
    """Return whether a file holds such an array. What a damaged one held is made again, see the journal."""
    if not regular(file).exists():
        return False
    try:
        there = opened(file)
    except GraphFormatError:
        return False
    return there.shape == shape and there.dtype == dtype


def opened(file: Path, *, write: bool = False) -> Array:
    """Map an array."""
    array: Array = mapped(file, f"not the array of an ingest. {RESTART}")
    return np.load(file, "r+") if write and array.size else array


def flush(array: Array) -> None:
    """Write what was changed of a mapped array to the disk."""
    if isinstance(array, np.memmap):
        array.flush()


def blocks(array: Array) -> Iterator[slice]:
    """Yield ranges of rows that cover an array, of a few megabytes each."""
    row_bytes = max(array.nbytes // max(len(array), 1), 1)
    step = max(_BLOCK_BYTES // row_bytes, 1)
    for start in range(0, len(array), step):
        yield slice(start, min(start + step, len(array)))


LEFT_OUT = 2**32 - 1
"""The vertex of a row that becomes none."""

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

    def refuse(self, wrong: Mask, column: str, what: Callable[[int], str], kind: Any = None) -> None:
        """Refuse the first of the rows that are wrong. ``what`` says why, for a place in this piece.

        In a check all rows are. ``kind`` tells refusals of a column apart. Default: the code of ``what``.
        """
        places = np.flatnonzero(wrong)
        rows = self.rows[places].tolist()

        def error(each: int) -> GraphFormatError:
            return self.refusal(column, places[each], what(int(places[each])))

        refuse_rows(self.reader, self.number, column, rows, error, kind or what.__code__)


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
    wrong = known & (lengths != width)
    piece.refuse(
        wrong,
        column,
        lambda place: (
            f"a list of {lengths[place]}, where others hold {width}. Write all with the same length"
        ),
    )
    known &= ~wrong
    numbers, missing = np.zeros((len(given), width), dtype), np.ones((len(given), width), np.bool_)
    if known.any():
        places = np.flatnonzero(known)
        flat = given.filter(pl.Series(known)).explode()
        values, absent = _converted(piece, column, flat, dtype, lambda place: int(places[place // width]))
        numbers[known], missing[known] = values.reshape(-1, width), absent.reshape(-1, width)
    missing[wrong] = False
    return numbers, missing


def _converted(
    piece: Piece, column: str, given: pl.Series, dtype: np.dtype[Any], row_of: Callable[[int], int]
) -> tuple[Array, Mask]:
    """Return numbers in a type, and which of them are missing. Refuse other text, and numbers too large for it."""
    values = given
    if is_text(given.dtype):
        values = given.cast(pl.String).cast(pl.Float64, strict=False)
        _refuse_values(
            piece,
            column,
            (values.is_null() & given.is_not_null()).to_numpy(),
            row_of,
            lambda place: f"{given[place]!r} is no number. Text becomes a feature by as: onehot",
        )
    missing = given.is_null()
    if values.dtype.is_float():
        missing |= values.is_nan().fill_null(False)
    if not values.dtype.is_float() and values.dtype != pl.Int8:
        values = values.cast(pl.Float64)
    exact = values.fill_null(0).to_numpy()
    with np.errstate(over="ignore"):
        numbers = exact.astype(dtype, copy=False)
    if dtype.kind == "f" and exact.dtype.kind == "f":
        _refuse_values(
            piece,
            column,
            np.isinf(numbers) & np.isfinite(exact),
            row_of,
            lambda place: f"{exact[place]} is too large for {dtype.name}",
        )
    return numbers, missing.to_numpy()


def _refuse_values(
    piece: Piece, column: str, wrong: Mask, row_of: Callable[[int], int], what: Callable[[int], str]
) -> None:
    """Refuse the rows of some values. A list has several."""
    values = {row_of(int(place)): int(place) for place in np.flatnonzero(wrong)[::-1]}
    rows = np.zeros(len(piece.rows), np.bool_)
    rows[[*values]] = True
    piece.refuse(rows, column, lambda row: what(values[row]), what.__code__)
