"""Labels and splits of vertices and of records, from columns of a table.

Labels are classes, several classes at once, or targets of a regression. Splits are told by a column, or by shares, at
random or by time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from zipfile import ZipFile

import numpy as np
import numpy.typing as npt

from ....core.frames import pl
from ....core.pairs import hashed
from ....errors import GraphFormatError, ParameterError
from ..schema import Rates
from ..tables import TableReader
from . import surveys
from .rows import (
    Array,
    Mask,
    Piece,
    blocks,
    is_list,
    is_number,
    is_text,
    is_whole,
    kind_in_files,
    lists,
    only,
    scalars,
)
from .surveys import (
    UNKNOWN,
    Categories,
    Fact,
    Survey,
    categories,
    extended,
    facts_of,
    merged,
    note_missing,
    width_of,
)

SPLITS = ("train", "val", "test")

NO_ROW, NO_SPLIT, TRAIN = 0, 1, 2
"""States of vertices and of records. The split ``SPLITS[i]`` is 2 + i."""

WORDS = {"train": 2, "val": 3, "valid": 3, "validation": 3, "test": 4}
"""The state of a row by the word for its split in a table."""

States = npt.NDArray[np.uint8]

_BLOCK = 1 << 20


class SplitColumn:
    """A column whose values name the split of each row."""

    def __init__(self, column: str, reader: TableReader) -> None:
        self.column = column
        valid = "A split is text: train, val or test"
        kind_in_files(reader.files, column, lambda dtype: "text" if is_text(dtype) else None, valid, only)

    def write(self, piece: Piece, states: States) -> None:
        """Write the states of some rows."""
        given = piece.frame[self.column].cast(pl.String)
        found = given.replace_strict(list(WORDS), list(WORDS.values()), default=0, return_dtype=pl.UInt8)
        codes = found.set(given.is_null(), NO_SPLIT).to_numpy()
        piece.refuse(
            codes == 0,
            self.column,
            lambda place: (
                f"{given[place]!r} is no split. Expected train, val (valid, validation), test or null"
            ),
        )
        states[piece.slots] = codes


def bounds_of(where: str, rates: Rates) -> tuple[float, ...]:
    """Return the bounds of the splits: the shares of all rows up to the end of each."""
    bounds = np.round(np.cumsum([rates.train, rates.val, rates.test]), 9)
    if bounds[-1] > 1:
        raise ParameterError(
            f"{where}: split: train {rates.train}, val {rates.val} and test {rates.test} are more than 1 together"
        )
    return tuple(bounds.tolist())


def split_at_random(
    states: States, chosen: Callable[[slice], Array], bounds: Sequence[float], seed: int
) -> None:
    """Put each chosen vertex or record in a split, by a hash of its number. The shares are met up to chance."""
    limits = np.array([min(math.ceil(bound * 2.0**64), 2**64 - 1) for bound in bounds], np.uint64)
    for rows in _blocks(len(states)):
        vertices = np.arange(rows.start, rows.stop, dtype=np.uint64)
        split = np.searchsorted(limits, hashed(vertices, 1, seed)[:, 0], side="right")
        states[rows] = np.where(chosen(rows) & (split < len(SPLITS)), 2 + split, states[rows])


def split_by_time(
    states: States, times: npt.NDArray[np.int64], chosen: Callable[[slice], Array], bounds: Sequence[float]
) -> None:
    """Put the earliest of the chosen vertices or records in train, the next in val, and the next in test.

    Rows of one time stay together. Where a share ends among them, they are all in the later split. So every split
    ends before the next one begins, and no split with those before it is larger than the shares say. One without a
    time is in no split.
    """

    def eligible(rows: slice) -> Array:
        return np.asarray(chosen(rows) & (times[rows] != UNKNOWN))

    def values() -> Iterator[npt.NDArray[np.uint64]]:
        for rows in _blocks(len(states)):
            yield _ordered(times[rows][eligible(rows)])

    total = sum(len(block) for block in values())
    counts = [min(math.ceil(round(bound * total, 6)), total) for bound in bounds]
    # The time at which each split has ended. None: it has all that are left.
    ends = [nth_smallest(values, count) if count < total else None for count in counts]
    for rows in _blocks(len(states)):
        block, found = _ordered(times[rows]), states[rows].copy()
        free = eligible(rows)
        for split, end in enumerate(ends):
            inside = free if end is None else free & (block < end)
            found[inside] = 2 + split
            free = free & ~inside
        states[rows] = found


def _ordered(times: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    """Return unsigned numbers in the same order."""
    return times.view(np.uint64) ^ np.uint64(1 << 63)


def nth_smallest(values: Callable[[], Iterable[npt.NDArray[np.uint64]]], rank: int) -> np.uint64:
    """Return the number of this rank among numbers that are read four times, 16 bits of them at a time."""
    prefix = 0
    for shift in (48, 32, 16, 0):
        counts = np.zeros(1 << 16, np.int64)
        for block in values():
            if shift < 48:
                block = block[block >> np.uint64(shift + 16) == np.uint64(prefix)]
            digits = (block >> np.uint64(shift)) & np.uint64(0xFFFF)
            counts += np.bincount(digits.astype(np.int64), minlength=len(counts))
        sums = np.cumsum(counts)
        digit = int(np.searchsorted(sums, rank, side="right"))
        rank -= int(sums[digit] - counts[digit])
        prefix = prefix << 16 | digit
    return np.uint64(prefix)


def write_splits(file: Path, states: States) -> dict[str, int]:
    """Write the numbers of the items of each split as a ``.npz``, and return its sizes. Only train may be empty."""
    blocks = list(_blocks(len(states)))
    sizes = dict.fromkeys(SPLITS, 0)
    dtype = np.dtype("<u4" if len(states) <= 2**32 else "<u8")
    with ZipFile(file, "w") as archive:
        for split, name in enumerate(SPLITS):
            sizes[name] = sum(int(np.count_nonzero(states[rows] == 2 + split)) for rows in blocks)
            if not sizes[name] and name != "train":
                del sizes[name]
                continue
            with archive.open(f"{name}.npy", "w", force_zip64=True) as written:
                head = {"descr": dtype.str, "fortran_order": False, "shape": (sizes[name],)}
                np.lib.format.write_array_header_1_0(written, head)
                for rows in blocks:
                    ids = np.flatnonzero(states[rows] == 2 + split) + rows.start
                    written.write(ids.astype(dtype).tobytes())
    return sizes


def _blocks(n: int) -> Iterator[slice]:
    for start in range(0, n, _BLOCK):
        yield slice(start, min(start + _BLOCK, n))


def split_description(splits: str | Rates, sizes: dict[str, int]) -> dict[str, Any]:
    """Return where a split comes from, and its sizes."""
    return {**({"column": splits} if isinstance(splits, str) else {"by": splits.by}), **sizes}


Form = Literal["whole", "number", "text", "rows of 0 and 1", "rows of numbers"]

_VALID = (
    "A label is a whole number, text (a class), a number (the target of a regression), or a list of 0 and 1"
)


class Labels:
    """The column of labels of a table. Classes of an earlier ``vocabulary`` keep their codes."""

    def __init__(
        self,
        where: str,
        column: str,
        reader: TableReader,
        vocabulary: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self._where, self.column, self._reader = where, column, reader
        self._in_types = kind_in_files(reader.files, column, _form, _VALID, _joined)
        self._anew = vocabulary is not None and column not in vocabulary
        self._vocabulary = (vocabulary or {}).get(column)
        if self._vocabulary is not None and self._in_types != "text":
            raise GraphFormatError(
                f"{where}: the vocabulary has names for the classes of column {column!r}, which now holds "
                f"{reader.files[0].dtypes[column]}. Store text, or leave the vocabulary out"
            )

    def facts(self) -> list[Fact]:
        """Return what has to be found out about each file."""
        return [surveys.Labels(self.column)] if self._in_types == "text" else []

    def widths(self, number: int) -> dict[str, int | None]:
        """Return the length of the lists of a file, if the labels are lists and the type does not say it."""
        if self._in_types.startswith("rows") and self._reader.files[number].dtypes[self.column] != pl.Array:
            return {self.column: width_of(self._reader, number, self.column)}
        return {}

    def plan(self, found: Sequence[Survey]) -> LabelPlan:
        """Return how the labels of all files are stored."""
        if self._in_types == "text":
            return self._plan_of_text(facts_of(found, "labels", self.column))
        if not self._in_types.startswith("rows"):
            return LabelPlan(self.column, self._in_types)
        widths: dict[int, str] = {}
        for number, file in enumerate(self._reader.files):
            dtype = file.dtypes[self.column]
            width = dtype.size if dtype == pl.Array else found[number]["widths"][self.column]
            if width is not None:
                widths.setdefault(width, file.path)
        if len(widths) > 1 or 0 in widths:
            told = ", ".join(f"{width} in {path}" for width, path in widths.items())
            raise GraphFormatError(f"column {self.column!r}: lists of labels need one length, found {told}")
        return LabelPlan(self.column, self._in_types, next(iter(widths), 1))

    def _plan_of_text(self, found: Sequence[Any]) -> LabelPlan:
        told = {each["kind"] for each in found} - {None}
        if "text" in told or not told or self._vocabulary is not None:
            # Numbers beside names are names as well.
            _, counts = merged(self.column, [{**each, "kind": "text"} for each in found])
            if self._vocabulary is None:
                if self._anew:
                    note_missing(self._where, self.column)
                return LabelPlan(self.column, "text", classes=categories(counts))
            classes = extended(self._where, self.column, counts, self._vocabulary)
            return LabelPlan(self.column, "text", classes=classes)
        return LabelPlan(self.column, "number" if "number" in told else "whole")


class LabelPlan:
    """How labels are stored.

    Whole numbers stay as they are, and names become codes: int64, of which -1 is none. Numbers are float32, of which
    NaN is none. Rows of 0 and 1 are uint8. A vertex or record without a label has zeros.
    """

    def __init__(
        self, column: str, form: str, width: int | None = None, classes: Categories | None = None
    ) -> None:
        self.column, self.form, self.classes = column, form, classes
        self.dtype: np.dtype[Any] = np.dtype(
            {"whole": np.int64, "text": np.int64, "rows of 0 and 1": np.uint8}.get(form, np.float32)
        )
        self.none = {"i": -1, "f": np.nan, "u": 0}[self.dtype.kind]
        self._width = width

    def shape(self, n: int) -> tuple[int, ...]:
        """Return the shape of the labels of n vertices or records."""
        return (n,) if self._width is None else (n, self._width)

    def write(self, piece: Piece, labels: Array) -> None:
        """Write the labels of some rows."""
        labels[piece.slots] = self._of(piece)

    def _of(self, piece: Piece) -> Array:
        if self.classes is not None:
            return self.classes.of(piece, self.column, piece.frame[self.column], lambda place: place)
        if self.form == "whole":
            return self._whole(piece)
        if self.form == "number":
            numbers, missing = scalars(piece, self.column, self.dtype)
        else:
            numbers, missing = lists(piece, self.column, self._width or 1, np.dtype(np.float32))
        if self.form != "rows of 0 and 1":
            return np.where(missing, np.float32(np.nan), numbers)
        piece.refuse(
            np.asarray(missing.any(axis=1) & ~missing.all(axis=1)),
            self.column,
            lambda place: "an element of the list is missing",
        )
        wrong = ((numbers != 0) & (numbers != 1)).any(axis=1)
        piece.refuse(wrong, self.column, lambda place: "the list holds other numbers than 0 and 1")
        return numbers.astype(np.uint8)

    def _whole(self, piece: Piece) -> Array:
        given = piece.frame[self.column]
        text = given.cast(pl.String) if is_text(given.dtype) else given
        numbers = text.cast(pl.Int64, strict=False)
        wrong = (numbers.is_null() & given.is_not_null()).to_numpy()
        piece.refuse(
            wrong,
            self.column,
            lambda place: f"{given[place]!r} is no class. Classes are whole numbers below 2**63",
        )
        return numbers.fill_null(-1).to_numpy()

    def known(self, labels: Array) -> Mask:
        """Return which of these labels are known."""
        if labels.dtype.kind == "f":
            return np.asarray(~np.isnan(labels).reshape(len(labels), -1).any(axis=1))
        return np.ones(len(labels), np.bool_) if labels.ndim == 2 else np.asarray(labels >= 0)

    def description(self, labels: Array) -> dict[str, Any]:
        """Return what the labels are, the number of classes or of targets, and how many are missing."""
        classes, known = 0, 0
        for rows in blocks(labels):
            block = labels[rows]
            known += int(self.known(block).sum())
            if self.form == "whole":
                classes = max(classes, int(block.max(initial=-1)) + 1)
        if self.classes is not None:
            classes = len(self.classes.values)
        of = {"number": "targets", "rows of numbers": "targets", "rows of 0 and 1": "several classes"}
        told: dict[str, Any] = {"column": self.column, "of": of.get(self.form, "classes")}
        if told["of"] == "targets":
            told["width"] = self._width or 1
        else:
            told["classes"] = self._width or classes
        return told | {"dtype": self.dtype.name, "missing": len(labels) - known}


def _form(dtype: Any) -> Form | None:
    if is_list(dtype):
        return "rows of 0 and 1" if is_whole(dtype.inner) else "rows of numbers"
    if is_text(dtype):
        return "text"
    if is_number(dtype):
        return "whole" if is_whole(dtype) else "number"
    return None


def _joined(found: set[str]) -> str | None:
    if found == {"whole", "number"}:
        return "number"
    if found == {"rows of 0 and 1", "rows of numbers"}:
        return "rows of numbers"
    return only(found)
