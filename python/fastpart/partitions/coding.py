"""Features in fewer bytes: as float16, or with 8 bits per number.

A coded row is a row of uint8. Number ``j`` of it is ``low + step * code[j]``, in float32. By row, the row ends with its
own ``low`` and ``step``, 4 bytes each. By column, each column has its own, in ``feature_columns.npy`` of the directory
or, of features of edges, in ``edge_feature_columns.npy``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.parameters import FeatureDtype
from ..core.rows import Array, Numbers, Rows, standardised
from ..errors import ParameterError, arg
from ..graphs.graph_directory import Embedded

Scale = Literal["row", "column"]
"""What has a scale of its own."""

Codes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float32]

COLUMNS = "feature_columns.npy"
"""float32 of shape (2, width): ``low`` of every column, then ``step`` of every column."""

EDGE_COLUMNS = "edge_feature_columns.npy"
"""``COLUMNS`` of features of edges."""

SCALE_BYTES = 8
"""Bytes at the end of a row that has a scale of its own."""


def row_dtype(width: int) -> np.dtype[Any]:
    """Return the type of a row that has a scale of its own, as it stands in files outside of partition directories."""
    return np.dtype([("codes", "u1", (width,)), ("low", "<f4"), ("step", "<f4")])


class Coding:
    """How rows are coded and decoded.

    Parameters
    ----------
    width : int
        Numbers of a row.
    columns : numpy.ndarray, optional
        ``low`` and ``step`` of every column. Default: each row has its own.
    """

    dtype: np.dtype[Any] = np.dtype(np.uint8)

    def __init__(self, width: int, columns: Floats | None = None) -> None:
        self.width, self.columns = width, columns

    @property
    def row_shape(self) -> tuple[int]:
        """Shape of a coded row."""
        return (self.width + (SCALE_BYTES if self.columns is None else 0),)

    @cached_property
    def core(self) -> _core.Coding:
        """The coding for the core."""
        columns = None if self.columns is None else np.ascontiguousarray(self.columns, np.float32).reshape(-1)
        return _core.Coding(self.width, columns)

    def encode(self, numbers: Floats) -> Codes:
        """Return rows of finite numbers, whose differences are finite, as coded rows."""
        coded = np.empty((len(numbers), *self.row_shape), np.uint8)
        self.core.encode(np.require(numbers, np.float32, ["C", "A"]), coded)
        return coded

    def decode(self, rows: Codes) -> Floats:
        """Return coded rows as numbers."""
        decoded = np.empty((len(rows), self.width), np.float32)
        self.core.decode(np.ascontiguousarray(rows), decoded)
        return decoded


LARGEST_ERROR = 0.02
"""Root mean square error of a sample, as a share of standard deviations, above which rows are refused."""

_SAMPLE, _RUN = 4096, 64
"""Rows of a sample, and of each run of rows that it consists of."""

_BLOCK_BYTES = 4 << 20
"""Numbers that are coded at a time."""

_LARGEST = float(np.finfo(np.float32).max) / 2
"""The difference of two numbers has to be a number."""

_CONSTANT = 1e-12
"""A column whose variance is a smaller share of its squares is constant but for rounding."""

_LEVELS = 255

_EXACT_IN_FLOAT16 = 2**11
"""float16 holds all whole numbers up to here."""

Mask = npt.NDArray[np.bool_]


class Coded(Protocol):
    """Rows of features with 8 bits per number.

    Attributes
    ----------
    rows : Rows
        The coded rows.
    columns : numpy.ndarray or None
        float32: ``low`` and ``step`` of every column. None: every row has its own.
    """

    rows: Rows
    columns: Floats | None

    def described(self) -> dict[str, Any]:
        """Return the entry of the manifest, once all rows were read."""
        ...


@dataclass(frozen=True)
class Features:
    """The features of all vertices as they are stored."""

    rows: Rows
    coded: Coded | None = None
    """What ``rows`` are those of, if they have 8 bits per number."""
    statistics: Numbers | None = None
    """What was subtracted from the features, and what they were divided by."""
    embedded: Embedded = field(default_factory=dict)
    """The columns that hold codes of categories, by name."""


def stored_features(
    features: Rows,
    dtype: FeatureDtype | None,
    train: Mask | None,
    name: str = "features",
    embedded: Embedded | None = None,
) -> Features:
    """Return features as they are stored, standardised by those of the training vertices if these are given.

    Errors begin with ``name``, or with the name of the option of ``dtype``. Columns that are ``embedded`` hold codes,
    which stay as they are.
    """
    embedded = embedded or {}
    if embedded:
        _refuse_inexact_codes(embedded, dtype, name)
        features = _checked(features, embedded, name)
    given = GivenCodes(features) if features.dtype.names else None
    if given is not None and dtype in (None, "int8") and train is None:
        return Features(given.rows, given)
    features, statistics = features if given is None else given.decoded(), None
    if train is not None:
        features, statistics = standardised(features, train, [each.place for each in embedded.values()])
        dtype = dtype or ("float32" if given is None else "int8")
    if dtype is None:
        return Features(features, embedded=embedded)
    refuse_uncodable(features, dtype, name)
    if dtype == "int8":
        coded = CodedRows(features, name)
        return Features(coded.rows, coded, statistics)
    return Features(narrowed(features, dtype, name), None, statistics, embedded)


def _refuse_inexact_codes(embedded: Embedded, dtype: FeatureDtype | None, name: str) -> None:
    """Refuse numbers that do not hold the codes of all categories."""
    most = {"int8": 0, "float16": _EXACT_IN_FLOAT16}
    for column, each in embedded.items():
        if dtype in most and each.rows - 1 > most[dtype]:
            raise ParameterError(
                f'{_option(name)}: "{dtype}" does not hold the codes of column {column!r}, which has learned '
                "rows. Leave it out"
            )


def _checked(features: Rows, embedded: Embedded, name: str) -> Rows:
    """Return rows that are refused, when they are read, where a column of codes holds other numbers."""
    last = max(each.place for each in embedded.values())
    if len(features.shape) != 2 or features.dtype.names or last >= features.shape[1]:
        raise ParameterError(
            f"{name}: categories.json beside the file names column {last}, which rows of shape {features.shape[1:]} "
            "lack. Ingest again"
        )
    read = features.read

    def checked(start: int, stop: int) -> Array:
        rows = read(start, stop)
        for column, each in embedded.items():
            codes = rows[:, each.place]
            wrong = ~((codes >= 0) & (codes < each.rows) & (codes == np.floor(codes)))
            if wrong.any():
                row = int(wrong.argmax())
                raise ParameterError(
                    f"{name}: row {start + row} holds {codes[row]} in column {column!r}, which is the code of no "
                    "category in categories.json beside the file. Ingest again"
                )
        return rows

    return Rows(features.shape, features.dtype, checked)


class Errors:
    """The differences between rows and what is stored of them.

    Errors are measured against the standard deviation of their column: a sum over all numbers would count columns of
    large numbers only, and choose scales that lose the others.
    """

    def __init__(self, width: int) -> None:
        self._rows = 0
        self._sums, self._squares, self._errors = np.zeros((3, width))
        self._largest = 0.0

    def add(self, rows: Floats, stored: Floats) -> None:
        """Count some rows."""
        numbers = rows.reshape(len(rows), len(self._sums)).astype(np.float64)
        errors = np.abs(numbers - stored.reshape(numbers.shape))
        self._rows += len(rows)
        self._sums += numbers.sum(axis=0)
        self._squares += np.square(numbers).sum(axis=0)
        self._errors += np.square(errors).sum(axis=0)
        self._largest = max(self._largest, float(errors.max(initial=0)))

    @property
    def rms(self) -> float:
        """The root mean square error, as a share of standard deviations. A column counts with 1 at most."""
        variances = self._squares - np.square(self._sums) / max(self._rows, 1)
        varying = variances > _CONSTANT * self._squares
        shares = np.minimum(self._errors[varying] / variances[varying], 1)
        return float(np.sqrt(shares.mean())) if len(shares) else 0.0

    def described(self) -> dict[str, float]:
        """Return the errors as the manifest states them."""
        return {"rms_error": self.rms, "largest_error": self._largest}


class GivenCodes:
    """Features that are given coded, each row with a scale of its own. Their bytes are copied."""

    def __init__(self, source: Rows) -> None:
        width = source.dtype.itemsize - SCALE_BYTES
        if len(source.shape) != 1 or width < 1 or source.dtype != row_dtype(width):
            raise TypeError(
                f"features: expected numbers, or n rows with the fields codes, low and step of {row_dtype(2)}, got "
                f"shape {source.shape}, got dtype {source.dtype}"
            )
        self._source, self._coding = source, Coding(width)
        self.rows = Rows((len(source), *self._coding.row_shape), self._coding.dtype, self._read)
        self.columns: Floats | None = None

    def described(self) -> dict[str, Any]:
        """Return the entry of the manifest. The errors are not known."""
        return _described(self._coding, {})

    def decoded(self) -> Rows:
        """Return the numbers of the rows."""
        shape = (len(self._source), self._coding.width)
        return Rows(shape, np.dtype(np.float32), lambda *some: self._coding.decode(self._read(*some)))

    def _read(self, start: int, stop: int) -> Codes:
        rows = np.ascontiguousarray(self._source.read(start, stop))
        wrong = ~(np.isfinite(rows["low"]) & np.isfinite(rows["step"]))
        if wrong.any():
            raise ParameterError(f"features: the scale of row {start + int(wrong.argmax())} is not finite")
        return rows.view(np.uint8).reshape(len(rows), -1)


class CodedRows:
    """Features that are coded anew each time they are read, with a scale per row or per column."""

    def __init__(self, source: Rows, name: str = "features") -> None:
        self._source, self._name = source, name
        self.columns: Floats | None = None
        sample = _sample(len(source), partial(_floats, source, name))
        if _error_of(sample, _columns_of([sample])).rms < _error_of(sample, None).rms:
            columns = _columns_of(
                _blocks(source, name, 0, len(source))
            )  # those of the sample may be too narrow
            if _error_of(sample, columns).rms < _error_of(sample, None).rms:
                self.columns = columns
        _refuse_inexact("int8", _error_of(sample, self.columns), name)
        self._errors, self._coding = Errors(source.shape[1]), Coding(source.shape[1], self.columns)
        self.rows = Rows((len(source), *self._coding.row_shape), self._coding.dtype, self._read)

    def described(self) -> dict[str, Any]:
        """Return the entry of the manifest, once all rows were read."""
        return _described(self._coding, self._errors.described())

    def _read(self, start: int, stop: int) -> Codes:
        coded, filled = np.empty((stop - start, *self._coding.row_shape), np.uint8), 0
        for numbers in _blocks(self._source, self._name, start, stop):
            block = coded[filled : filled + len(numbers)]
            block[:] = self._coding.encode(numbers)
            self._errors.add(numbers, self._coding.decode(block))
            filled += len(numbers)
        return coded


def _described(coding: Coding, errors: dict[str, float]) -> dict[str, Any]:
    scale: Scale = "row" if coding.columns is None else "column"
    return {"dtype": "float32", "shape": [coding.width], "coding": {"scale": scale, **errors}}


def narrowed(features: Rows, dtype: FeatureDtype, name: str = "features") -> Rows:
    """Return rows as float32 or float16, and refuse those that float16 would change too much."""
    wanted, width = np.dtype(dtype), math.prod(features.shape[1:])
    if dtype == "float16":
        sample = _sample(len(features), features.read).astype(np.float32).reshape(-1, width)
        sample = sample[np.isfinite(sample).all(axis=1)]
        errors = Errors(width)
        errors.add(sample, _cast(sample, wanted, 0, name).astype(np.float32))
        _refuse_inexact(dtype, errors, name)
    return Rows(
        features.shape, wanted, lambda start, stop: _cast(features.read(start, stop), wanted, start, name)
    )


def _cast(rows: Array, dtype: np.dtype[Any], first: int, name: str) -> Array:
    with np.errstate(over="ignore"):
        found = np.asarray(rows).astype(dtype)
    lost = np.isinf(found) & np.isfinite(rows)
    if lost.any():
        row = first + int(np.argwhere(lost)[0][0])
        raise ParameterError(
            f"{name}: row {row} holds a number that {dtype} does not. Leave out {arg(_option(name))}"
        )
    return found


def refuse_uncodable(features: Rows, dtype: FeatureDtype, name: str = "features") -> None:
    """Refuse 8 bits per number for rows that are no rows of several numbers."""
    if dtype == "int8" and (len(features.shape) != 2 or not features.shape[1]):
        raise ParameterError(
            f'{_option(name)}: "int8" needs features of shape (n, width), got {features.shape}. Use "float16"'
        )


def _option(name: str) -> str:
    """Return the name of the option that says how features are stored."""
    return f"{name.removesuffix('s')}_dtype"


def _refuse_inexact(dtype: FeatureDtype, errors: Errors, name: str) -> None:
    if errors.rms > LARGEST_ERROR:
        others = '"float16" or "float32"' if dtype == "int8" else '"float32"'
        raise ParameterError(
            f'{_option(name)}: "{dtype}" changes a sample of the features by {errors.rms:.1%} of the standard '
            f"deviations of their columns, more than {LARGEST_ERROR:.0%}. Use {others}"
        )


def _error_of(sample: Floats, columns: Floats | None) -> Errors:
    errors = Errors(sample.shape[1])
    coding = Coding(sample.shape[1], columns)
    errors.add(sample, coding.decode(coding.encode(sample)))
    return errors


def _columns_of(blocks: Iterable[Floats]) -> Floats | None:
    """Return ``low`` and ``step`` of every column."""
    low = high = None
    for block in blocks:
        if len(block):
            least, most = block.min(axis=0), block.max(axis=0)
            low = least if low is None else np.minimum(low, least)
            high = most if high is None else np.maximum(high, most)
    return None if low is None or high is None else np.stack([low, (high - low) / np.float32(_LEVELS)])


def _sample(n: int, read: Callable[[int, int], Array]) -> Array:
    """Return up to so many of n rows: runs of rows, spread over all."""
    starts: Sequence[int] = range(0, max(n, 1), _RUN)
    if n > _SAMPLE:
        starts = np.linspace(0, n - _RUN, _SAMPLE // _RUN).astype(np.int64).tolist()
    return np.concatenate([read(start, min(start + _RUN, n)) for start in starts])


def _blocks(rows: Rows, name: str, start: int, stop: int) -> Iterator[Floats]:
    step = max(_BLOCK_BYTES // (4 * rows.shape[1]), 1)
    for first in range(start, stop, step):
        yield _floats(rows, name, first, min(first + step, stop))


def _floats(rows: Rows, name: str, start: int, stop: int) -> Floats:
    """Return rows as float32. Refuse those that have no scale."""
    with np.errstate(over="ignore"):
        numbers = np.asarray(rows.read(start, stop)).astype(np.float32)
    wrong = ~(np.abs(numbers) <= _LARGEST)
    if wrong.any():
        row = start + int(np.argwhere(wrong)[0][0])
        raise ParameterError(
            f"{name}: row {row} holds NaN, an infinite number, or one above {_LARGEST:.1e}, which "
            f'{arg(_option(name), "int8")} does not take. Use "float32"'
        )
    return numbers
