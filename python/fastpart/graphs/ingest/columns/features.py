"""Features from columns of tables: numbers, lists of numbers and categories as one matrix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ....core.frames import pl
from ....errors import GraphFormatError, ParameterError
from ..schema import Column
from ..tables import TableReader
from . import kinds
from .pieces import Array, Mask, Piece
from .surveys import Fact, Missing, Survey, Values, facts_of, merged, width_of
from .values import coded, lists, scalars

_BLOCK_BYTES = 8 << 20
"""What is written of the matrix at a time."""

_LARGEST_FLOAT16 = float(np.finfo(np.float16).max)

_NUMBERS = "Features are numbers, lists of numbers, text that holds numbers, or categories (as: category)"


@dataclass(frozen=True)
class Feature:
    """A column of features, and what the schema says about it."""

    column: str
    form: Literal["number", "list", "category"]
    fill: float | str | None = None
    standardise: bool = False


@dataclass(frozen=True)
class Layout:
    """The matrix: its type, and where each column begins. The last number is its width."""

    dtype: np.dtype[Any]
    starts: tuple[int, ...]
    codes: dict[str, dict[Any, int]]
    """The values of each column of categories, sorted, with their counts. The place of a value is its code."""

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.starts[-1]

    @property
    def rows(self) -> int:
        """Rows that are written at a time."""
        return max(_BLOCK_BYTES // (4 * max(self.width, 1)), 1)


class Features:
    """The columns of features of a table."""

    def __init__(self, entries: Sequence[Column], reader: TableReader) -> None:
        self._files, self._reader = reader.files, reader
        self.columns = [_feature(each, reader) for each in entries]
        self.names = [each.column for each in self.columns]

    def facts(self) -> list[Fact]:
        """Return what has to be found out about each file."""
        facts: list[Fact] = [Values(each.column) for each in self.columns if each.form == "category"]
        return facts + [
            Missing(each.column, numbers=each.form != "category")
            for each in self.columns
            if each.fill is not None
        ]

    def widths(self, number: int) -> dict[str, int | None]:
        """Return the lengths of the lists of a file, where its types do not say them."""
        dtypes = self._files[number].dtypes
        return {
            each.column: width_of(self._reader, number, each.column)
            for each in self.columns
            if each.form == "list" and dtypes[each.column] != pl.Array
        }

    def layout(self, surveys: Sequence[Survey]) -> Layout:
        """Return the matrix that holds all columns."""
        widths = [self._width(each, surveys) if each.form == "list" else 1 for each in self.columns]
        starts = np.cumsum([0, *widths]).tolist()
        codes = {
            each.column: _codes(each, surveys, self._files[0].path)
            for each in self.columns
            if each.form == "category"
        }
        return Layout(self._dtype(), tuple(starts), codes)

    def _width(self, feature: Feature, surveys: Sequence[Survey]) -> int:
        """Return the length of all lists of a column. Refuse files that differ."""
        name = feature.column
        widths: dict[int, str] = {}
        for file, survey in zip(self._files, surveys, strict=True):
            dtype = file.dtypes[name]
            width = dtype.size if dtype == pl.Array else survey["widths"][name]
            if width is not None:
                widths.setdefault(width, file.path)
        if len(widths) > 1:
            told = ", ".join(f"{width} numbers in {path}" for width, path in list(widths.items())[:2])
            raise GraphFormatError(f"column {name!r}: the lists hold {told}. Write all with the same length")
        width = next(iter(widths), 1)
        if width == 0:
            raise GraphFormatError(f"{widths[0]}: column {name!r} holds empty lists. Leave it out")
        return width

    def _dtype(self) -> np.dtype[Any]:
        """Return float32, or int8 or float16 if all columns hold such numbers."""
        if any(each.form == "category" or each.standardise for each in self.columns):
            return np.dtype(np.float32)
        found = set()
        for file in self._files:
            for each in self.columns:
                dtype = file.dtypes[each.column]
                if dtype != pl.Null:
                    found.add(dtype.inner if each.form == "list" else dtype)
        fills = [float(each.fill) for each in self.columns if each.fill is not None]
        if found == {pl.Int8} and all(fill.is_integer() and -128 <= fill < 128 for fill in fills):
            return np.dtype(np.int8)
        if found == {getattr(pl, "Float16", None)} and all(abs(fill) <= _LARGEST_FLOAT16 for fill in fills):
            return np.dtype(np.float16)
        return np.dtype(np.float32)

    def write(self, piece: Piece, layout: Layout, matrix: Array) -> None:
        """Write the features of some rows."""
        block = np.empty((len(piece.frame), layout.width), layout.dtype)
        for each, start, stop in zip(self.columns, layout.starts, layout.starts[1:], strict=False):
            if each.form == "category":
                block[:, start] = _coded(piece, each, list(layout.codes[each.column]))
            else:
                block[:, start:stop] = _numbers(piece, each, stop - start, layout.dtype)
        matrix[piece.slots] = block

    def absent(self, layout: Layout) -> Array:
        """Return the features of a vertex without a row."""
        row = np.zeros(layout.width, layout.dtype)
        for each, start, stop in zip(self.columns, layout.starts, layout.starts[1:], strict=False):
            if each.fill is not None:
                row[start:stop] = _code_of_fill(each, layout) if each.form == "category" else each.fill
        return row

    def standardised(self, layout: Layout, *, filled: bool = True) -> list[int]:
        """Return the columns of the matrix that are standardised, on request without those that have a fill value."""
        bounds = zip(self.columns, layout.starts, layout.starts[1:], strict=False)
        return [
            place
            for each, start, stop in bounds
            if each.standardise and (filled or each.fill is None)
            for place in range(start, stop)
        ]

    def description(self, layout: Layout, surveys: Sequence[Survey]) -> dict[str, Any]:
        """Return what the matrix holds: its columns, and how many rows had to be filled."""
        columns: list[dict[str, Any]] = []
        for each, start, stop in zip(self.columns, layout.starts, layout.starts[1:], strict=False):
            told: dict[str, Any] = {"column": each.column, "first": start, "width": stop - start}
            if each.form == "category":
                told["categories"] = len(layout.codes[each.column])
            if each.fill is not None:
                told["filled"] = sum(facts_of(surveys, "missing", each.column))
            if each.standardise:
                told["standardised"] = True
            columns.append(told)
        return {"width": layout.width, "dtype": layout.dtype.name, "columns": columns}


def _feature(entry: Column, reader: TableReader) -> Feature:
    kind_of = _category_kind if entry.as_ == "category" else _form
    form = kinds.kind_in_files(reader.files, entry.column, kind_of, _NUMBERS, kinds.only)
    if entry.as_ == "category":
        return Feature(entry.column, "category", entry.fill)
    if entry.fill is not None and not math.isfinite(np.float32(entry.fill)):
        raise ParameterError(f"column {entry.column!r}: fill: {entry.fill} is no finite number of float32")
    return Feature(entry.column, "list" if form == "list" else "number", entry.fill, entry.standardise)


def _form(dtype: Any) -> str | None:
    if kinds.is_list(dtype):
        return "list"
    return "number" if kinds.is_number(dtype) or kinds.is_text(dtype) else None


def _category_kind(dtype: Any) -> str | None:
    if dtype.is_integer():
        return "whole"
    return "text" if kinds.is_text(dtype) or dtype in (pl.Boolean, pl.Date) else None


def _codes(feature: Feature, surveys: Sequence[Survey], path: str) -> dict[Any, int]:
    """Return the values of a column of categories, sorted, with their counts."""
    kind, counts = merged(feature.column, facts_of(surveys, "values", feature.column))
    if feature.fill is not None:
        counts.setdefault(_fill_of(feature, kind, path), 0)
    return dict(sorted(counts.items()))


def _fill_of(feature: Feature, kind: str | None, path: str) -> Any:
    """Return the category that is told for missing ones."""
    fill = feature.fill
    if kind != "whole":
        return f"{fill:g}" if isinstance(fill, float) else str(fill)
    if isinstance(fill, float) and fill.is_integer():
        return int(fill)
    if isinstance(fill, int):
        return fill
    raise ParameterError(
        f"{path}: column {feature.column!r} holds whole numbers, so fill: {fill!r} is none of its kind"
    )


def _code_of_fill(feature: Feature, layout: Layout) -> int:
    values = list(layout.codes[feature.column])
    kind = "whole" if values and isinstance(values[0], int) else "text"
    return values.index(_fill_of(feature, kind, ""))


def _coded(piece: Piece, feature: Feature, values: Sequence[Any]) -> npt.NDArray[np.int64]:
    """Return the codes of a column of categories. Missing ones have that of the fill value, or are refused."""
    codes = coded(piece, feature.column, values)
    missing = codes < 0
    if not missing.any():
        return codes
    _refuse_missing(piece, feature, missing, '"unknown"')
    kind = "whole" if isinstance(values[0], int) else "text"
    codes[missing] = list(values).index(_fill_of(feature, kind, str(piece.reader.files[piece.number].path)))
    return codes


def _numbers(piece: Piece, feature: Feature, width: int, dtype: np.dtype[Any]) -> Array:
    """Return the numbers of a column as a matrix. Missing ones are filled, or refused."""
    if feature.form == "number":
        numbers, missing = scalars(piece, feature.column, dtype)
        numbers, missing = numbers[:, None], missing[:, None]
    else:
        numbers, missing = lists(piece, feature.column, width, dtype)
    if missing.any():
        _refuse_missing(piece, feature, np.asarray(missing.any(axis=1)), "0")
        numbers = np.where(missing, np.asarray(feature.fill, dtype), numbers)
    return numbers


def _refuse_missing(piece: Piece, feature: Feature, missing: Mask, example: str) -> None:
    if feature.fill is None:
        remedy = f"{{column: {feature.column}, fill: {example}}}"
        piece.refuse(
            missing,
            feature.column,
            lambda place: f"the value is missing. Say in the schema what stands for it: {remedy}",
        )
