"""Protocols of results: numpy, DLPack and Arrow export, notebook pages and tables, equality and pickles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from .frames import pl
from .parameters import one_line

Array = npt.NDArray[Any]

_CPU = (1, 0)
"""The CPU in DLPack's numbering."""

_EXPORTS_READ_ONLY = np.lib.NumpyVersion(np.__version__) >= "2.1.0"
"""Whether this numpy can export read-only arrays."""

MOST_ROWS = 40
"""Most rows of a table that are shown. Of a longer one, the first and last rows are shown."""

MOST_COLUMNS = 8
"""Most columns of a table of a notebook."""


class Assignment:
    """One number per item, in ``assignment``. numpy, DLPack and Arrow consumers get these numbers.

    Two objects of one type are equal if they give every item the same number. A pickle or a copy has the same read-only
    arrays, without the attributes in ``_forgotten``.
    """

    assignment: Array
    _column: ClassVar[str]
    _forgotten: ClassVar[tuple[str, ...]] = ()

    def __len__(self) -> int:
        return len(self.assignment)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Assignment) or type(other) is not type(self):
            return NotImplemented
        same = self._values() == other._values() and np.array_equal(self.assignment, other.assignment)
        return self is other or same

    __hash__ = None  # type: ignore[assignment]  # some attributes may be set

    def _values(self) -> tuple[Any, ...]:
        """Return the values that must be equal, too."""
        return ()

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is None:  # numpy 1.26 does not accept None
            return np.asarray(self.assignment, dtype)
        return np.array(self.assignment, dtype, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _CPU

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if stream is not None or dl_device not in (None, _CPU):
            raise BufferError(f"the array is in the memory of the CPU, not on device {dl_device}")
        if copy is not False:  # torch 2.15 asks for version 1, and then writes into read-only arrays
            return np.array(self.assignment).__dlpack__()
        if _EXPORTS_READ_ONLY and max_version is not None and max_version >= (1, 0):
            return self.assignment.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)
        raise BufferError(
            "the array is read-only, and this consumer cannot import read-only arrays. Let it copy"
        )

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pl.DataFrame({self._column: self.assignment}).__arrow_c_stream__(requested_schema)

    def __getstate__(self) -> dict[str, Any]:
        return {
            name: np.asarray(value) if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
            if name not in self._forgotten
        }

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        vars(self).update(state)


class MiniBatches(Protocol):
    """The part of :class:`fastpart.loading.Loader` that does not need torch."""

    @property
    def vertices(self) -> npt.NDArray[np.int64]:
        """Ids of all seeds of all ranks."""

    def __len__(self) -> int:
        """Steps of an epoch."""

    def __iter__(self) -> Iterator[Any]:
        """Return the batches of the next epoch."""

    def set_epoch(self, epoch: int) -> None:
        """Make the next iteration that of an epoch."""


# Pages of notebooks, without scripts, colours and external files.


def facts(title: str, named: Mapping[str, Any]) -> str:
    """Return a title and a table of names and values."""
    return f"<div><p>{escape(title)}</p>{html_table((), [*named.items()])}</div>"


def tables(title: str, *frames: Any, keys: int = 1) -> str:
    """Return a title and Polars frames below it. A wide frame becomes several tables, each with its first ``keys``."""
    return f"<div><p>{escape(title)}</p>{''.join(_tables(frame, keys) for frame in frames)}</div>"


def _tables(frame: Any, keys: int) -> str:
    """Return a frame as tables of few columns. One row becomes a list of names and values."""
    if frame.width <= MOST_COLUMNS:
        return _table(frame)
    if len(frame) == 1:
        return html_table((), frame.row(0, named=True).items())
    names, step = frame.columns, MOST_COLUMNS - keys
    places = range(keys, len(names), step)
    return "".join(_table(frame.select(names[:keys] + names[at : at + step])) for at in places)


def _table(frame: Any) -> str:
    rows: list[Sequence[Any]] = frame.head(MOST_ROWS).rows()
    if len(frame) > MOST_ROWS:
        half = MOST_ROWS // 2
        rows = [*rows[:half], ["..."] * frame.width, *frame.tail(half).rows()]
    return html_table(frame.columns, rows)


def html_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table. Without columns the rows are names and values."""
    if not columns:
        named = (f"<tr>{_row('th', row[:1])}{_row('td', row[1:])}</tr>" for row in rows)
        return f"<table>{''.join(named)}</table>"
    body = "".join(f"<tr>{_row('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{_row('th', columns)}</tr></thead><tbody>{body}</tbody></table>"


def _row(tag: str, cells: Iterable[Any]) -> str:
    return "".join(f"<{tag}>{_cell(cell)}</{tag}>" for cell in cells)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}"
    return escape(f"{value:,}" if isinstance(value, int) else str(value))


_GAP = "  "


class Table(NamedTuple):
    """A table of text. Columns are aligned to the right, but for those in ``left``."""

    title: str
    columns: Sequence[str]
    """No names: the table is a list of names and values."""
    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)

    def __str__(self) -> str:
        lines = [self.columns, *self.rows] if self.columns else self.rows
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [
            _GAP.join(
                cell.ljust(width) if place in self.left else cell.rjust(width)
                for place, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([*([self.title] if self.title else []), *text])

    @property
    def html(self) -> str:
        """The table for a notebook."""
        return (f"<p>{escape(self.title)}</p>" if self.title else "") + html_table(self.columns, self.rows)


class Facts(dict[str, Any]):
    """Facts by name: a dict, whose text is a few tables."""

    def _tables(self) -> list[Table]:
        """Return the tables that show the facts."""
        return [listed((name, str(value)) for name, value in self.items())]

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._tables()))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<div>{''.join(table.html for table in self._tables())}</div>"


def listed(named: Iterable[tuple[str, str]], title: str = "") -> Table:
    """Return a list of names and values."""
    return Table(title, (), [*named], left=(0, 1))


def side_by_side(title: str, columns: tuple[str, str], rows: Sequence[tuple[str, str]], times: int) -> Table:
    """Return a long table of two columns in ``times`` as many. It goes on at the top of the next two."""
    height = max(-(-len(rows) // times), 1)
    filled = [*rows, *[("", "")] * (-len(rows) % height)]
    groups = [filled[start : start + height] for start in range(0, len(filled), height)]
    lines = [[cell for pair in line for cell in pair] for line in zip(*groups, strict=True)]
    return Table(title, columns * len(groups), lines, range(0, 2 * len(groups), 2))


def shortened(rows: Sequence[tuple[str, ...]]) -> Sequence[tuple[str, ...]]:
    """Return the first rows of a long table, and how many more there are."""
    if len(rows) <= MOST_ROWS:
        return rows
    return [*rows[:MOST_ROWS], (f"... {len(rows) - MOST_ROWS:,} more", *[""] * (len(rows[0]) - 1))]


def name_of(text: object, most: int = 20) -> str:
    """Return a name of the user's as a cell."""
    return one_line(text, most)
