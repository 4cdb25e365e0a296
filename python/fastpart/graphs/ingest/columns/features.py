"""Features from columns of tables: numbers, lists of numbers, dates and categories as one matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ....core.frames import pl
from ....core.notes import log
from ....errors import CapacityError, GraphFormatError, ParameterError
from ...graph_directory import MOST_EMBEDDED, default_dim
from ..schema import Column
from ..tables import TableReader
from .rows import Array, Mask, Piece, is_list, is_number, is_text, kind_in_files, lists, only, scalars
from .surveys import (
    UNKNOWN,
    Categories,
    Codes,
    Fact,
    Missing,
    Survey,
    Times,
    Values,
    categories,
    facts_of,
    kept,
    merged,
    note_missing,
    width_of,
)

_BLOCK_BYTES = 8 << 20
"""What is written of the matrix at a time."""

_LARGEST_FLOAT16 = float(np.finfo(np.float16).max)

_MOST_ONEHOT = 1024
"""The most values of a column that become a column of 0 and 1 each."""

_NUMBERS = (
    "Features are numbers, lists of numbers, text that holds numbers, categories (as: onehot, as: embedding, as: "
    "code), or dates (as: days)"
)
_CATEGORIES = (
    "Categories are text, whole numbers, dates, or false and true. With as: onehot also lists of them"
)
_DATES = "as: days takes dates and time stamps"

_DAY = {"date": 1, "stamp": 86_400_000_000}
"""How many of the numbers that :class:`Times` reads are a day."""

Form = Literal["number", "list", "code", "embedding", "onehot", "days"]


@dataclass(frozen=True)
class Feature:
    """A column of features, and what the schema says about it."""

    column: str
    form: Form
    fill: float | str | None = None
    standardise: bool = False
    times: Times | None = None
    """How the dates of the column are read."""
    dim: int | None = None
    """Width of the learned rows of categories. None: by their number."""

    @property
    def categorical(self) -> bool:
        """Whether its values are categories."""
        return self.form in ("code", "embedding", "onehot")


@dataclass(frozen=True)
class Layout:
    """The matrix: its type, and where each column begins. The last number is its width."""

    dtype: np.dtype[Any]
    starts: tuple[int, ...]
    categories: dict[str, Categories]
    """The values of each column of categories."""
    units: dict[str, str]
    """How each column of dates is written: "date" or "stamp"."""

    @property
    def width(self) -> int:
        """Number of columns."""
        return self.starts[-1]

    @property
    def rows(self) -> int:
        """Rows that are written at a time."""
        return max(_BLOCK_BYTES // (4 * max(self.width, 1)), 1)


class Features:
    """The columns of features of a table.

    ``vocabulary`` has the values that columns of categories had in an earlier ingest, in the order of their codes.
    """

    def __init__(
        self,
        where: str,
        entries: Sequence[Column],
        reader: TableReader,
        vocabulary: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self._where, self._files, self._reader = where, reader.files, reader
        self.columns = [_feature(each, reader) for each in entries]
        self.names = [each.column for each in self.columns]
        self._vocabulary = vocabulary or {}
        if vocabulary is not None:
            for each in self.columns:
                if each.categorical and each.column not in vocabulary:
                    note_missing(where, each.column)

    def facts(self, number: int) -> list[Fact]:
        """Return what has to be found out about a file."""
        facts: list[Fact] = []
        for each in self.columns:
            if each.categorical:
                facts.append(Values(each.column))
            if each.times is not None:
                facts += each.times.facts(number)
            if each.fill is not None or each.form == "embedding":
                facts.append(Missing(each.column, numbers=each.form in ("number", "list")))
        return facts

    def widths(self, number: int) -> dict[str, int | None]:
        """Return the lengths of the lists of numbers of a file, where its types do not say them."""
        dtypes = self._files[number].dtypes
        return {
            each.column: width_of(self._reader, number, each.column)
            for each in self.columns
            if each.form == "list" and dtypes[each.column] != pl.Array
        }

    def layout(self, surveys: Sequence[Survey], rows: int) -> Layout:
        """Return the matrix that holds all columns, of so many rows."""
        found = {each.column: self._categories(each, surveys) for each in self.columns if each.categorical}
        widths = []
        for each in self.columns:
            if each.form == "onehot":
                widths.append(_width_of_onehot(self._where, each.column, found[each.column], rows))
            else:
                widths.append(self._width(each, surveys) if each.form == "list" else 1)
            if each.form == "embedding":
                _refuse_many(self._where, each.column, found[each.column])
        units = {each.column: _unit(each.times, surveys) for each in self.columns if each.times is not None}
        return Layout(self._dtype(), tuple(np.cumsum([0, *widths]).tolist()), found, units)

    def _categories(self, feature: Feature, surveys: Sequence[Survey]) -> Categories:
        """Return the values of a column of categories, and how often each occurs or fills a row."""
        name = feature.column
        kind, counts = merged(name, facts_of(surveys, "values", name))
        if feature.fill is not None:
            fill = _fill_of(feature, kind, self._files[0].path)
            counts[fill] = counts.get(fill, 0) + sum(facts_of(surveys, "missing", name))
        if name not in self._vocabulary:
            return categories(counts)
        return kept(self._where, name, counts, self._vocabulary[name])

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
        if any(each.categorical or each.form == "days" or each.standardise for each in self.columns):
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
            if each.categorical:
                block[:, start:stop] = _of_categories(
                    piece, each, layout.categories[each.column], stop - start
                )
            elif each.times is not None:
                block[:, start] = _days(piece, each, layout.units[each.column])
            else:
                block[:, start:stop] = _numbers(piece, each, stop - start, layout.dtype)
        matrix[piece.slots] = block

    def absent(self, layout: Layout) -> Array:
        """Return the features of a vertex without a row."""
        row = np.zeros(layout.width, layout.dtype)
        for each, start, stop in zip(self.columns, layout.starts, layout.starts[1:], strict=False):
            if each.fill is None:
                if each.form == "embedding":
                    row[start] = _missing_code(layout.categories[each.column])
                continue
            if not each.categorical:
                row[start:stop] = each.fill
                continue
            code = layout.categories[each.column].code(_text_of(each.fill))
            if each.form in ("code", "embedding"):
                row[start] = code
            else:
                row[start + code] = 1
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
            if each.form in ("code", "embedding", "onehot", "days"):
                told["as"] = each.form
            if each.categorical:
                told["categories"] = len(layout.categories[each.column].values)
                if (unknown := layout.categories[each.column].unknown) is not None:
                    told["unknown"] = unknown
            if each.fill is not None:
                told["filled"] = sum(facts_of(surveys, "missing", each.column))
            elif each.form == "embedding":
                told["missing"] = sum(facts_of(surveys, "missing", each.column))
            if each.standardise:
                told["standardised"] = True
            columns.append(told)
        return {"width": layout.width, "dtype": layout.dtype.name, "columns": columns}

    def embedded(self, layout: Layout, surveys: Sequence[Survey]) -> dict[str, dict[str, Any]]:
        """Return what the file of categories says of each column of codes for learned rows, beside its values."""
        found = {}
        for each, start in zip(self.columns, layout.starts, strict=False):
            if each.form != "embedding":
                continue
            known = layout.categories[each.column]
            missing = 0 if each.fill is not None else sum(facts_of(surveys, "missing", each.column))
            if missing:
                log.info(
                    "%s: column %r: %s without a value. Missing values have a learned row of their own",
                    self._where,
                    each.column,
                    f"{missing:,} row{'s' if missing != 1 else ''}",
                )
            found[each.column] = {
                "as": "embedding",
                "place": start,
                "dim": each.dim or default_dim(len(known.values)),
                "unknown": known.unknown or 0,
                "missing": missing,
            }
        return found


def _feature(entry: Column, reader: TableReader) -> Feature:
    name, fill = entry.column, entry.fill
    if entry.as_ in ("code", "embedding", "onehot"):
        kind_of = _kind_of_lists if entry.as_ == "onehot" else _kind_of_category
        kind_in_files(reader.files, name, kind_of, _CATEGORIES, only)
        return Feature(name, entry.as_, fill, dim=entry.dim or None)
    if fill is not None and not math.isfinite(np.float32(fill)):
        raise ParameterError(f"column {name!r}: fill: {fill} is no finite number of float32")
    if entry.as_ == "days":
        return Feature(name, "days", fill, entry.standardise, Times(name, reader, _DATES))
    form = kind_in_files(reader.files, name, _form, _NUMBERS, only)
    return Feature(name, "list" if form == "list" else "number", fill, entry.standardise)


def _form(dtype: Any) -> str | None:
    if is_list(dtype):
        return "list"
    return "number" if is_number(dtype) or is_text(dtype) else None


def _kind_of_category(dtype: Any) -> str | None:
    if dtype.is_integer():
        return "whole"
    return "text" if is_text(dtype) or dtype in (pl.Boolean, pl.Date) else None


def _kind_of_lists(dtype: Any) -> str | None:
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else dtype
    return "text" if inner == pl.Null else _kind_of_category(inner)


def _width_of_onehot(where: str, column: str, found: Categories, rows: int) -> int:
    """Return the number of columns of 0 and 1: one for each value, and one for all that a vocabulary lacks."""
    width = len(found.values) + 1
    if width > _MOST_ONEHOT + 1:
        raise CapacityError(
            f"{where}: column {column!r}: {len(found.values):,} values are too many for `as: onehot`, which takes "
            f"{_MOST_ONEHOT:,}. As columns of 0 and 1 they would take {4 * rows * width / 1e9:,.3g} GB. Say `{{column: "
            f"{column}, as: embedding}}`, or store rarer values as one"
        )
    return width


def _refuse_many(where: str, column: str, found: Categories) -> None:
    """Refuse categories whose learned rows belong in parts, and not in the memory of every worker."""
    if len(found.values) > MOST_EMBEDDED:
        raise CapacityError(
            f"{where}: column {column!r}: {len(found.values):,} values are too many for `as: embedding`, which takes "
            f"{MOST_EMBEDDED:,}. Make them a type of vertices without features, whose rows are learned, and a relation "
            "to it, or store rarer values as one"
        )


def _missing_code(found: Categories) -> int:
    """Return the code of a missing value, behind that of unknown ones. A fill value is a category like others."""
    return found.slot + 1


def _unit(times: Times, surveys: Sequence[Survey]) -> str:
    """Return whether the dates of a column are days or time stamps. Refuse numbers."""
    unit = times.kind(surveys)
    if unit not in _DAY and any(facts_of(surveys, "times", times.column) or [True]):
        raise GraphFormatError(f"column {times.column!r} holds whole numbers. {_DATES}. Leave `as` out")
    return unit


def _text_of(value: float | str) -> str:
    """Return a fill value as the text that it stands for."""
    return (
        str(value) if isinstance(value, str | int) else f"{value:.0f}" if value.is_integer() else f"{value:g}"
    )


def _fill_of(feature: Feature, kind: str | None, path: str) -> Any:
    """Return the category that is told for missing ones."""
    fill = feature.fill
    assert fill is not None
    if kind != "whole":
        return _text_of(fill)
    if isinstance(fill, float) and fill.is_integer():
        return int(fill)
    if isinstance(fill, int):
        return fill
    raise ParameterError(
        f"{path}: column {feature.column!r} holds whole numbers, so fill: {fill!r} is none of its kind"
    )


def _of_categories(piece: Piece, feature: Feature, found: Categories, width: int) -> Array:
    """Return the codes of a column of categories, or a column of 0 and 1 for each. Missing ones are filled."""
    given = piece.frame[feature.column]
    if given.dtype not in (pl.List, pl.Array):
        codes = _filled(piece, feature, found, found.of(piece, feature.column, given, lambda place: place))
        if feature.form in ("code", "embedding"):
            return codes[:, None]
        rows = np.arange(len(codes))
    else:
        given = given.arr.to_list() if given.dtype == pl.Array else given
        # A row without a list is missing as a whole, and counts as one element.
        lengths = given.list.len().fill_null(1).to_numpy()
        rows = np.repeat(np.arange(len(given)), lengths)
        values = given.filter((given.list.len() > 0).fill_null(True)).explode()
        codes = found.of(piece, feature.column, values, lambda place: int(rows[place]))
        codes = _filled(piece, feature, found, codes, rows)
    block = np.zeros((len(given), width), np.float32)
    block[rows, codes] = 1
    return block


def _filled(
    piece: Piece, feature: Feature, found: Categories, codes: Codes, rows: Codes | None = None
) -> Codes:
    """Return codes in which the fill value stands for missing ones. Refuse these without one."""
    missing = codes < 0
    if not missing.any():
        return codes
    if feature.form == "embedding" and feature.fill is None:
        return np.where(missing, _missing_code(found), codes)
    wrong = missing
    if rows is not None:
        wrong = np.zeros(len(piece.frame), np.bool_)
        wrong[rows[missing]] = True
    _refuse_missing(piece, feature, wrong, "unknown")
    fill = 0 if feature.fill is None else found.code(_text_of(feature.fill))
    return np.where(missing, fill, codes)


def _days(piece: Piece, feature: Feature, unit: str) -> Array:
    """Return dates as days since 1970-01-01, and time stamps with their part of a day."""
    assert feature.times is not None
    numbers = feature.times.of(piece, unit)
    missing = numbers == UNKNOWN
    days = numbers / _DAY.get(unit, 1)
    if missing.any():
        _refuse_missing(piece, feature, missing, "0")
        days[missing] = feature.fill or 0
    return days


def _numbers(piece: Piece, feature: Feature, width: int, dtype: np.dtype[Any]) -> Array:
    """Return the numbers of a column as a matrix. Missing ones are filled, or refused."""
    if feature.form == "number":
        numbers, missing = scalars(piece, feature.column, dtype)
        numbers, missing = numbers[:, None], missing[:, None]
    else:
        numbers, missing = lists(piece, feature.column, width, dtype)
    if missing.any():
        _refuse_missing(piece, feature, np.asarray(missing.any(axis=1)), "0")
        numbers = np.where(missing, np.asarray(feature.fill or 0, dtype), numbers)
    return numbers


def _refuse_missing(piece: Piece, feature: Feature, missing: Mask, example: str) -> None:
    if feature.fill is None:
        form = f"as: {feature.form}, " if feature.form not in ("number", "list") else ""
        remedy = f"{{column: {feature.column}, {form}fill: {example}}}"
        piece.refuse(
            missing,
            feature.column,
            lambda place: f"the value is missing. Say in the schema what stands for it: {remedy}",
        )
