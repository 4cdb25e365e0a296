"""The files of a table, their rows in batches, and ids in the types in which they are compared.

Polars reads the files, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from ....core.frames import before_polars_threads, pl
from ....core.parameters import one_line, shown
from ....core.row_groups import refuse_large
from ....errors import EdgeFileChangedError, GraphFormatError
from ..problems import attempted, refuse_rows
from ..schema import Format
from .formats import Source, source_of
from .listing import URL, Found, find, unchanged
from .tablefiles import ComputedTable, frame_file, open_file, reading, with_partitions
from .tablefiles import TableFile as TableFile

BATCH = 1 << 18
"""Rows in memory at a time."""

_AT_ONCE = 8
"""Files of an object store whose footers are read at a time."""


class TableReader:
    """A table of a schema: its files in the order of their rows, which is that of their paths."""

    def __init__(
        self, files: Sequence[TableFile], memory_limit: int | None = None, whole: bool = True
    ) -> None:
        self.files, self._memory_limit, self.whole = tuple(files), memory_limit, whole
        """``whole``: no file of the table is left out. In a check, those that are refused are."""
        self.sources: tuple[Source, ...] = tuple(
            each.source or source_of(Found(each.path, each.bytes, each.mark), None, None) for each in files
        )

    @property
    def rows(self) -> int:
        """The rows of all files."""
        return sum(file.rows for file in self.files)

    def is_text(self, number: int) -> bool:
        """Whether all columns of a file are text, which is converted where it is used."""
        return self.sources[number].text

    def divisible(self, number: int) -> bool:
        """Whether a file may be read from any row on without reading those before it."""
        return self.sources[number].divisible

    def batches(
        self, number: int, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[pl.DataFrame]:
        """Yield columns of rows start..stop of file ``number``, in the order given, in frames of at most 2^18 rows.

        Raises
        ------
        GraphFormatError
            The file is damaged. The text names it.
        EdgeFileChangedError
            The file is not the one that was opened.
        MemoryBudgetError
            A row group of a Parquet file takes more memory than there is.
        """
        file, source = self.files[number], self.sources[number]
        stop = file.rows if stop is None else stop
        before_polars_threads(shown(file.path))
        self._require_unchanged(number)
        read = 0
        dtypes = [file.dtypes[column] for column in columns if column in file.dtypes]
        refuse_large(file.path, source.row_groups, dtypes, self._memory_limit)
        with reading(file.path, source):
            frame = with_partitions(source).select(columns)
            if (start, stop) != (0, file.rows):
                frame = frame.slice(start, stop - start)
            for batch in frame.collect_batches(chunk_size=BATCH, maintain_order=True):
                read += len(batch)
                yield batch
        self._require_unchanged(number)
        if read != stop - start:
            raise _changed(file.path)

    def ids(
        self,
        number: int,
        columns: Sequence[str],
        kinds: Sequence[IdKind],
        start: int = 0,
        stop: int | None = None,
    ) -> Iterator[pl.DataFrame]:
        """Yield columns of ids as :meth:`batches` does, as Int64, UInt64, String or Binary. Nulls stay.

        Raises
        ------
        GraphFormatError
            A negative number where they are unsigned, or text that is no number where the schema says ``as: int``.
        """
        first = start
        for batch in self.batches(number, columns, start, stop):
            cast = []
            for column, kind in zip(batch.get_columns(), kinds, strict=True):
                ids = cast_ids(column, kind)
                if ids.null_count() > column.null_count():
                    wrong = (ids.is_null() & column.is_not_null()).arg_true().to_list()
                    self._refuse_ids(number, column, kind, first, wrong)
                cast.append(ids)
            first += len(batch)
            yield batch.with_columns(cast)

    def _refuse_ids(
        self, number: int, column: pl.Series, kind: IdKind, first: int, wrong: Sequence[int]
    ) -> None:
        """Refuse ids that have no value of their kind. Row ``first`` is the first one of the column."""
        rows = [first + row for row in wrong]

        def error(each: int) -> GraphFormatError:
            return GraphFormatError(f"{self.place(number, rows[each])}: {_reason(column, wrong[each], kind)}")

        refuse_rows(self, number, column.name, rows, error)

    def place(self, number: int, row: int) -> str:
        """Return the file and the row (from 0), or the line (from 1) of a text file, as messages show it."""
        return self.places(number, [row])[0]

    def places(self, number: int, rows: Sequence[int]) -> list[str]:
        """Return the places of several rows."""
        source = self.sources[number]
        if source.place is not None:
            return [source.place(row) for row in rows]
        file = shown(self.files[number].path)
        if source.lines is None:
            return [f"{file}: row {row}" for row in rows]
        return [f"{file}: line {line}" for line in source.lines(rows)]

    def _require_unchanged(self, number: int) -> None:
        file = self.files[number]
        if self.sources[number].watched and not unchanged(Found(file.path, file.bytes, file.mark)):
            raise _changed(file.path)


def open_table(
    name: str,
    files: Any,
    format: Format | None = None,
    root: str = ".",
    tmp_dir: Path | None = None,
    memory_limit: int | None = None,
) -> TableReader:
    """Find the files of a table and read what they say of their columns and rows.

    Parameters
    ----------
    name : str
        The entry of the schema, as ``vertices.paper``, for messages.
    files : path, str, list of these, or data frame
        Paths, globs, folders and URLs, or a frame of Polars, pandas or Arrow.
    format : Format, optional
        How text is written.
    root : str
        Where relative paths begin: a folder or a URL.
    tmp_dir : path, optional
        Folder of unpacked copies of .bz2 and .xz files.
    memory_limit : int, optional
        What a row group of Parquet and an unpacked .zst may take. None: what is available.

    Raises
    ------
    FileNotFoundError
        A path, a glob or a folder without a file.
    GraphFormatError
        A file is no table, or damaged.
    """
    before_polars_threads(name)
    if isinstance(files, ComputedTable):
        return TableReader([files.file()])
    if any(hasattr(files, each) for each in ("collect_batches", "__arrow_c_stream__", "iloc")):
        return TableReader([frame_file(name, files)])
    found = find(name, files, root)
    if any(URL.match(each.path) for each in found):
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            opened = list(pool.map(lambda each: open_file(each, format, tmp_dir, memory_limit), found))
    else:
        tried = [attempted(each.path, open_file, each, format, tmp_dir, memory_limit) for each in found]
        opened = [each for each in tried if each is not None]
    return TableReader(opened, memory_limit, whole=len(opened) == len(found))


def _changed(path: str) -> EdgeFileChangedError:
    return EdgeFileChangedError(f"{shown(path)} changed while it was read. Start again with restart")


IdKind = Literal["signed", "unsigned", "string", "binary"]
"""How ids are compared: by value as i64 or u64, or by bytes."""


_RANGES = {"signed": "-2^63 to 2^63 - 1", "unsigned": "0 to 2^64 - 1"}


def dtype_of(kind: IdKind) -> Any:
    """Return the Polars type of ids of a kind."""
    return {"signed": pl.Int64, "unsigned": pl.UInt64, "string": pl.String, "binary": pl.Binary}[kind]


def cast_ids(column: pl.Series, kind: IdKind) -> pl.Series:
    """Return the ids of a column. Nulls stay. An id that has no value of this kind becomes null."""
    wanted = dtype_of(kind)
    if column.dtype == wanted:
        return column
    if column.dtype == pl.Binary and kind == "string":
        with suppress(pl.exceptions.ComputeError):  # Polars does not say which bytes are not UTF-8
            return column.cast(pl.String)
        return pl.Series(column.name, [_decoded(value) for value in column], pl.String)
    return column.cast(wanted, strict=False)


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _reason(column: pl.Series, row: int, kind: IdKind) -> str:
    value = column[row]
    if column.dtype == pl.Binary:
        at = f"column {column.name!r}: the bytes {value[:40].hex()}"
        return f"{at} are not UTF-8. Leave out `as: string`, since bytes are ids, too"
    at = f"column {column.name!r}: {one_line(repr(value), 80)}"
    if column.dtype == pl.String:
        if value.removeprefix("-").isdecimal():
            return f"{at} is outside {_RANGES[kind]}. Read the ids as text: `as: string`"
        return f"{at} is not a whole number, but the schema says `as: int`. Correct it, or say `as: string`"
    if kind == "unsigned" and value < 0:
        return (
            f"{at} is negative, but other columns of these ids are unsigned. Use one type of whole numbers, or "
            "`as: string` everywhere"
        )
    if column.dtype.is_integer():
        return f"{at} is outside {_RANGES[kind]}. Read the ids as text: `as: string`"
    return f"{at} is no id. Use whole numbers or text"
