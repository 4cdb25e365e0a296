"""Labels from a column of a table: classes, several classes at once, or targets of a regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np

from ....core.frames import pl
from ....errors import GraphFormatError
from ..tables import TableReader
from . import kinds, surveys
from .arrays import blocks
from .categories import Categories, categories, extended, note_missing
from .pieces import Array, Mask, Piece
from .surveys import Fact, Survey, facts_of, merged, width_of
from .values import lists, scalars

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
        self._in_types = kinds.kind_in_files(reader.files, column, _form, _VALID, _joined)
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
        text = given.cast(pl.String) if kinds.is_text(given.dtype) else given
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
    if kinds.is_list(dtype):
        return "rows of 0 and 1" if kinds.is_whole(dtype.inner) else "rows of numbers"
    if kinds.is_text(dtype):
        return "text"
    if kinds.is_number(dtype):
        return "whole" if kinds.is_whole(dtype) else "number"
    return None


def _joined(found: set[str]) -> str | None:
    if found == {"whole", "number"}:
        return "number"
    if found == {"rows of 0 and 1", "rows of numbers"}:
        return "rows of numbers"
    return kinds.only(found)
