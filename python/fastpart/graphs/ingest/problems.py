"""Refusals of an ingest: raised at once, or noted by a check that goes on behind each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ...core.frames import pl
from ...errors import FastpartError

LISTED = 20
"""Rows of a problem that are listed."""

_COUNTED = 100_000
"""Rows of a column that are counted. A column with more is wrong as a whole."""

Result = TypeVar("Result")


@dataclass
class Problem:
    """A refusal, and the rows that it holds for.

    Attributes
    ----------
    text : str
        What the ingest says, of the first row.
    where : str
        The file, or the entry of the schema.
    column : str
        The column. Empty if it is no matter of one column.
    count : int
        Number of rows, up to 100,000. 0 if it is no matter of rows.
    rows : list of str
        The first 20 of them, as ``row 7`` (from 0), or ``line 8`` of a text file (from 1).
    """

    text: str
    where: str
    column: str = ""
    count: int = 0
    rows: list[str] = field(default_factory=list)

    @property
    def remedy(self) -> str | None:
        """All sentences but the first, which say what to do."""
        return FastpartError(self.text).remedy

    def __str__(self) -> str:
        if self.count < 2:
            return self.text
        more = ", ..." if self.count > len(self.rows) else ""
        at_least = "at least " if self.count >= _COUNTED else ""
        return f"{self.text} ({at_least}{self.count:,} rows: {', '.join(self.rows)}{more})"


@dataclass(frozen=True)
class Problems:
    """The refusals of an ingest of a schema, found by a check.

    Attributes
    ----------
    problems : tuple of Problem
        Each kind of refusal of a column of a file once. Empty: the ingest runs.
    """

    problems: tuple[Problem, ...] = ()

    def __len__(self) -> int:
        return len(self.problems)

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.problems)

    def __str__(self) -> str:
        count = f"{len(self)} problem{'s' if len(self) != 1 else ''}"
        return "\n".join([*map(str, self.problems), count])

    __repr__ = __str__

    def to_frame(self) -> pl.DataFrame:
        """Return a frame of Polars with a row for each problem."""
        columns: dict[str, Any] = {
            "where": pl.String,
            "column": pl.String,
            "count": pl.Int64,
            "rows": pl.List(pl.String),
            "problem": pl.String,
            "remedy": pl.String,
        }
        rows = [
            (each.where, each.column, each.count, each.rows, each.text, each.remedy) for each in self.problems
        ]
        return pl.DataFrame(rows, columns, orient="row")


class _Notes:
    """The problems of a check, as they are found. A cell that was refused is not refused again."""

    def __init__(self) -> None:
        self._found: dict[Any, Problem] = {}
        self._readers: dict[Any, tuple[Any, int, list[int]]] = {}
        self._cells: dict[Any, set[int]] = {}

    def add(self, where: str, error: BaseException) -> None:
        text = str(error)
        if isinstance(error, OSError) and error.filename is not None:
            text = f"{error.filename}: {error.strerror}. Correct the path"
        self._found.setdefault((where, text), Problem(text, where))

    def add_rows(
        self,
        reader: Any,
        number: int,
        column: str,
        rows: Sequence[int],
        error: Callable[[int], Any],
        kind: Any,
    ) -> None:
        cells = self._cells.setdefault((reader, number, column), set())
        new = [place for place, row in enumerate(rows) if row not in cells][: _COUNTED - len(cells)]
        if not new:
            return
        key = (reader, number, column, kind)
        if key not in self._found:
            where = reader.files[number].path
            self._found[key] = Problem(str(error(new[0])), where, column)
            self._readers[key] = reader, number, []
        problem, listed = self._found[key], self._readers[key][2]
        cells.update(rows[place] for place in new)
        listed += [rows[place] for place in new[: LISTED - len(listed)]]
        problem.count += len(new)

    def result(self) -> Problems:
        for key, (reader, number, listed) in self._readers.items():
            places = reader.places(number, listed)
            self._found[key].rows = [place.rpartition(": ")[2] for place in places]
        return Problems(tuple(self._found.values()))


_NOTES: ContextVar[_Notes | None] = ContextVar("notes", default=None)


@contextmanager
def noted() -> Iterator[_Notes]:
    """Note what is refused in this block."""
    notes = _Notes()
    token = _NOTES.set(notes)
    try:
        yield notes
    finally:
        _NOTES.reset(token)


def checking() -> bool:
    """Return whether a check is at work, which goes on behind refusals."""
    return _NOTES.get() is not None


def refuse(where: str, error: FastpartError) -> None:
    """Raise an error. A check notes it and goes on."""
    if (notes := _NOTES.get()) is None:
        raise error
    notes.add(where, error)


def refuse_rows(
    reader: Any, number: int, column: str, rows: Sequence[int], error: Callable[[int], Any], kind: Any = None
) -> None:
    """Raise the error of the first of some rows of a file. A check notes all of them and goes on.

    ``error(i)`` is that of ``rows[i]``. ``kind`` tells refusals of a column apart. Default: the code of
    ``error``.
    """
    if not len(rows):
        return
    if (notes := _NOTES.get()) is None:
        raise error(0)
    notes.add_rows(reader, number, column, rows, error, kind or getattr(error, "__code__", error))


def attempted(where: str, function: Callable[..., Result], *args: Any) -> Result | None:
    """Return what a function returns. In a check, None if it refuses, which is noted."""
    try:
        return function(*args)
    except (FastpartError, FileNotFoundError, PermissionError) as error:
        if (notes := _NOTES.get()) is None:
            raise
        notes.add(where, error)
        return None
