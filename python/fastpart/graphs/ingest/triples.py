"""Tables whose column names the relation of each record, as the triples of a knowledge graph.

A first pass counts the names. Each name becomes a relation, whose reader is a view of the rows with that name. Names
become folders, so other signs than letters, digits, ``_``, ``.`` and ``-`` become ``_``; ``-2``, ``-3``, ... tell apart
what would then be equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from ...core.frames import pl
from ...core.notes import log
from ...core.parameters import one_line
from ...errors import CapacityError, GraphFormatError
from .formats import Source
from .schema import Relation
from .tablefiles import with_partitions
from .tables import TableReader

MOST = 1 << 15
"""Relations, at most."""


@dataclass(frozen=True)
class Part:
    """One relation of such a table."""

    name: str
    value: str
    reader: TableReader


def split(reader: TableReader, place: str, entry: Relation) -> list[Part]:
    """Return the relations that a column names, sorted by their names."""
    column = str(entry.relation)
    counts = [_count(reader, number, column, place, entry.nulls) for number in range(len(reader.files))]
    values = sorted({value for each in counts for value in each}, key=lambda value: value.encode())
    if len(values) > MOST:
        raise CapacityError(
            f"{place}.relation: column {column!r} has {len(values):,} values, more than {MOST:,} relations. Is it the "
            "one that names them?"
        )
    if not values:
        raise GraphFormatError(f"{place}.relation: column {column!r} has no value, so there is no relation")
    names = _names(values)
    return sorted(
        (Part(names[value], value, _view(reader, column, value, counts)) for value in values),
        key=lambda part: part.name,
    )


def refuse_taken(part: Part) -> NoReturn:
    """Raise, because another entry has the name of this relation."""
    raise GraphFormatError(
        f"relations.*: its relation {one_line(repr(part.value), 80)} is called {part.name!r}, as another entry is. "
        "Rename that entry"
    )


def _count(reader: TableReader, number: int, column: str, place: str, nulls: str) -> dict[str, int]:
    """Return how many rows of a file each relation has."""
    counts: dict[str, int] = {}
    row = 0
    for batch in reader.batches(number, [column]):
        values = batch[column].cast(pl.String)
        if nulls == "error" and values.null_count():
            at = reader.place(number, row + (values.is_null().arg_max() or 0))
            raise GraphFormatError(
                f"{at}: column {column!r} names no relation. Correct it, or say `nulls: drop` in {place}"
            )
        for value, count in values.drop_nulls().value_counts().iter_rows():
            counts[value] = counts.get(value, 0) + count
        row += len(batch)
    return counts


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


def _view(reader: TableReader, column: str, value: str, counts: Sequence[dict[str, int]]) -> TableReader:
    """Return a reader of the rows with one name."""
    files = []
    for number, file in enumerate(reader.files):
        source = _filtered(reader.sources[number], column, value)
        files.append(replace(file, rows=counts[number].get(value, 0), source=source))
    return TableReader(files)


def _filtered(source: Source, column: str, value: str) -> Source:
    named = pl.col(column).cast(pl.String) == value

    def scan() -> Any:
        return with_partitions(source).filter(named)

    def row_of(row: int) -> int:
        rows = with_partitions(source).select(pl.arg_where(named).slice(row, 1)).collect(engine="streaming")
        return int(rows.item())

    return replace(source, scan=scan, row=row_of, divisible=False, partitions={})
