"""Tables whose column names the relation of each record, as the triples of a knowledge graph.

A first pass counts the names. Further passes, one for each 2^21 rows, copy the columns of use to a temporary file in
which the rows of a relation follow each other. Names become folders, so other signs than letters, digits, ``_``, ``.``
and ``-`` become ``_``; ``-2``, ``-3``, ... tell apart what would then be equal.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, NoReturn

from ....core.frames import pl
from ....core.notes import log
from ....core.parameters import one_line, shown
from ....errors import CapacityError, GraphFormatError
from ...tables import write_table
from ..problems import refuse_rows
from ..schema import Relation
from ..tables import BATCH, TableReader
from ..tables.formats import Copy, Source
from ..tables.tablefiles import TableFile, reading, with_partitions

MOST = 1 << 15
"""Relations, at most."""

_ROWS = 1 << 21
"""Rows that a pass puts in order in memory."""

_FILE, _ROW = "__file", "__row"
"""Columns of the copy that say where a row comes from."""


@dataclass(frozen=True)
class Part:
    """One relation of such a table."""

    name: str
    value: str
    reader: TableReader


def split(
    reader: TableReader, place: str, entry: Relation, columns: Sequence[str], tmp_dir: Path | None
) -> list[Part]:
    """Return the relations that a column names, sorted by their names. Their readers have these columns."""
    column = str(entry.relation)
    counts: dict[str, int] = {}
    for number in range(len(reader.files)):
        _count(reader, number, column, place, entry.nulls, counts)
    counts = {value: counts[value] for value in sorted(counts, key=str.encode)}
    if len(counts) > MOST:
        raise CapacityError(
            f"{place}.relation: column {column!r} has {len(counts):,} values, more than {MOST:,} relations. Is it the "
            "one that names them?"
        )
    if not counts:
        raise GraphFormatError(f"{place}.relation: column {column!r} has no value, so there is no relation")
    copy = _Copy(reader, column, list(dict.fromkeys(columns)), counts, Copy(tmp_dir))
    names = _names(list(counts))
    parts = [Part(names[value], value, copy.view(value)) for value in counts]
    return sorted(parts, key=lambda part: part.name)


def refuse_taken(part: Part) -> NoReturn:
    """Raise, because another entry has the name of this relation."""
    raise GraphFormatError(
        f"relations.*: its relation {one_line(repr(part.value), 80)} is called {part.name!r}, as another entry is. "
        "Rename that entry"
    )


def _count(
    reader: TableReader, number: int, column: str, place: str, nulls: str, counts: dict[str, int]
) -> None:
    """Count how many rows of a file each relation has."""
    row = 0
    for batch in reader.batches(number, [column]):
        values = batch[column].cast(pl.String)
        if nulls == "error" and values.null_count():
            rows = [row + each for each in values.is_null().arg_true().to_list()]
            refuse_rows(
                reader, number, column, rows, partial(_nameless, reader, number, column, place, rows), ""
            )
        for value, count in values.drop_nulls().value_counts().iter_rows():
            counts[value] = counts.get(value, 0) + count
        row += len(batch)


def _nameless(
    reader: TableReader, number: int, column: str, place: str, rows: Sequence[int], each: int
) -> GraphFormatError:
    at = reader.place(number, rows[each])
    return GraphFormatError(
        f"{at}: column {column!r} names no relation. Correct it, or say `nulls: drop` in {place}"
    )


def _names(values: Sequence[str]) -> dict[str, str]:
    """Return a name for each value, the same whatever their order in the files."""
    names: dict[str, str] = {}
    taken: set[str] = {value for value in values if _plain(value) == value}
    for value in values:
        name = plain = _plain(value)
        number = 2
        while name in taken and name != value:
            name = f"{plain[: 63 - len(str(number))]}-{number}"
            number += 1
        taken.add(name)
        names[value] = name
    if renamed := [
        f"{one_line(repr(value), 60)} is {name}" for value, name in names.items() if value != name
    ]:
        more = f", and {len(renamed) - 5} more" if len(renamed) > 5 else ""
        log.info("relations are called by names that can be folders: %s%s", ", ".join(renamed[:5]), more)
    return names


def _plain(value: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]+", "_", value).lstrip(".-")[:64] or "_"


class _Copy:
    """A copy of a table in which the rows of a relation follow each other, in the order of the table."""

    def __init__(
        self,
        reader: TableReader,
        column: str,
        columns: Sequence[str],
        counts: Mapping[str, int],
        folder: Copy,
    ) -> None:
        self._reader, self._column, self._columns, self._counts = reader, column, columns, counts
        self._folder = folder  # which is removed with this object
        self._path = Path(folder.path, "table.arrow")
        self._dtypes = {name: _common(reader, name) for name in columns}
        self._first: dict[str, int] = {}
        rows = 0
        for value, count in counts.items():
            self._first[value] = rows
            rows += count
        write_table(self._path, self._dtypes | {_FILE: pl.UInt32(), _ROW: pl.UInt64()}, self._frames())
        marks = "\n".join(f"{file.path} {file.bytes} {file.mark}" for file in reader.files)
        self._mark = blake2b(marks.encode(), digest_size=16).hexdigest()

    def _frames(self) -> Iterator[pl.DataFrame]:
        """Yield the rows relation by relation. Each pass brings some relations that fit in memory, or a larger one."""
        for values in _groups(self._counts):
            named = pl.col(self._column).cast(pl.String)
            wanted = named.is_between(pl.lit(values[0]), pl.lit(values[-1]))
            frames = (
                frame for number in range(len(self._reader.files)) for frame in self._rows(number, wanted)
            )
            if len(values) == 1:
                yield from (frame.drop("__name") for frame in frames)
            else:
                yield pl.concat(list(frames)).sort("__name", maintain_order=True).drop("__name")

    def _rows(self, number: int, wanted: pl.Expr) -> Iterator[pl.DataFrame]:
        """Yield those rows of a file whose relation is wanted."""
        file, source = self._reader.files[number], self._reader.sources[number]
        with reading(file.path, source):
            frame = with_partitions(source).with_row_index(_ROW).filter(wanted)
            kept = frame.select(
                *(pl.col(name).cast(dtype) for name, dtype in self._dtypes.items()),
                pl.lit(number, dtype=pl.UInt32).alias(_FILE),
                pl.col(_ROW).cast(pl.UInt64),
                pl.col(self._column).cast(pl.String).alias("__name"),
            )
            yield from kept.collect_batches(chunk_size=BATCH, maintain_order=True)

    def view(self, value: str) -> TableReader:
        """Return a reader of the rows of one relation, as one file."""
        first, *others = self._reader.files
        source = Source(
            self._reader.sources[0].what,
            partial(self._scan, value),
            place=partial(self._place, value),
            text=any(source.text for source in self._reader.sources),
            watched=False,
            keep=self,
        )
        rows, all_rows = self._counts[value], sum(self._counts.values())
        size = (first.bytes + sum(file.bytes for file in others)) * rows // all_rows
        return TableReader([TableFile(first.path, size, self._mark, rows, self._dtypes, source)])

    def _scan(self, value: str) -> pl.LazyFrame:
        frame = pl.scan_ipc(self._path, glob=False, hive_partitioning=False)
        return frame.slice(self._first[value], self._counts[value]).select(self._columns)

    def _place(self, value: str, row: int) -> str:
        frame = pl.scan_ipc(self._path, glob=False, hive_partitioning=False)
        number, row = frame.slice(self._first[value] + row, 1).select(_FILE, _ROW).collect().row(0)
        return self._reader.place(number, row)


def _common(reader: TableReader, column: str) -> Any:
    """Return the type that a column has in the copy."""
    seen = [(file.dtypes[column], file) for file in reader.files if file.dtypes[column] != pl.Null]
    dtypes = {dtype for dtype, _ in seen}
    if len(dtypes) < 2:
        return next(iter(dtypes), pl.Null())
    if all(dtype.is_integer() for dtype in dtypes):
        return pl.UInt64() if pl.UInt64() in dtypes else pl.Int64()
    (dtype, file), (other, another) = seen[0], next(each for each in seen if each[0] != seen[0][0])
    raise GraphFormatError(
        f"relations.*: column {column!r} is {dtype} in {shown(file.path)}, but {other} in {shown(another.path)}. Store "
        "both in one type"
    )


def _groups(counts: Mapping[str, int]) -> Iterator[list[str]]:
    """Yield values in groups with at most :data:`_ROWS` rows, or one that has more."""
    group: list[str] = []
    rows = 0
    for value, count in counts.items():
        if group and rows + count > _ROWS:
            yield group
            group, rows = [], 0
        group.append(value)
        rows += count
    yield group
