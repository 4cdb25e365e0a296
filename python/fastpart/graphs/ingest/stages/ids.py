"""Vertices of a type are numbered by the rank of their ids: sort in runs, merge, and keep the way back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .... import _core
from ....core.frames import pl
from ....core.notes import log
from ....errors import CapacityError, GraphFormatError
from ...tables import write_table
from ..catalog import RelationTable, VertexTable
from ..problems import attempted, checking, refuse_rows
from ..tables import TableReader
from .job import Job, NumberedType, place

IDS = 1 << 18
"""Ids in memory at a time."""

_TABLE = 16 << 20
"""Bytes of the table of a bucket, up to the most buckets."""
PER_ID = 64 / 3
"""Bytes of the table of a bucket for each id."""
_MOST_BUCKETS = 255

_MOST = 2**32 - 2


def number_types(job: Job) -> dict[str, NumberedType]:
    """Number the vertices of all types, one type after the other."""
    numbered: dict[str, NumberedType] = {}
    first = 0
    for name, table in job.catalog.vertices.items():
        if (found := attempted(f"vertices.{name}", _number, job, table, first)) is None:
            continue  # in a check
        numbered[name] = found
        first += found.n
        if first > _MOST:
            raise CapacityError(f"there are more than {_MOST:,} vertices of all types")
    return numbered


def _number(job: Job, table: VertexTable, first: int) -> NumberedType:
    folder = job.path("types", table.name, "ids").parent
    facts = job.journal.done("number", table.name)
    if facts is None:
        facts = _merge(job, table, first, [*_sort(job, table), *_ends(job, table)], folder)
        for run in folder.glob("run-*"):
            run.unlink()
    elif table.reader is not None:
        job.advance("sort ids", sum(unit.bytes for unit in job.units[f"vertices/{table.name}"]))
    keys = tuple(folder / f"keys-{bucket:03}" for bucket in range(facts["buckets"]))
    return NumberedType(table.name, table.kind, first, facts["n"], keys, facts)


def _sort(job: Job, table: VertexTable) -> Iterator[dict[str, Any]]:
    """Sort the ids that the table of a type declares, unit by unit."""
    if table.reader is None or table.id_column is None:
        return
    for unit in job.units[f"vertices/{table.name}"]:
        done = job.journal.done("sort", f"{table.name}/{unit.name}")
        if done is None:
            sorter = _sorter(job, table, f"run-{unit.name}", distinct=False)
            for each in unit.slices:
                row = each.start
                for frame in table.reader.ids(
                    each.file, [table.id_column], [table.kind], each.start, each.stop
                ):
                    null = sorter.push(frame, 0, each.first + row - each.start)
                    if null is not None:
                        _refuse_nulls(table, table.reader, each.file, row, frame[table.id_column])
                    row += len(frame)
            done = _finish(job, sorter, "sort", f"{table.name}/{unit.name}")
        job.advance("sort ids", unit.bytes)
        yield done


def _ends(job: Job, table: VertexTable) -> Iterator[dict[str, Any]]:
    """Sort the ids of this type that relations name, where they make vertices."""
    for relation in job.catalog.relations.values():
        sides = [side for side in (0, 1) if adds(job, relation, side) and _type(relation, side) == table.name]
        if not sides:
            continue
        # Where `nulls: drop` drops a record, its other id makes no vertex. So both ends are read.
        drops = relation.entry.nulls == "drop"
        read = (0, 1) if drops else sides
        columns = [relation.columns[side] for side in read]
        kinds = [job.catalog.vertices[_type(relation, side)].kind for side in read]
        for unit in job.units[f"relations/{relation.name}"]:
            name = f"{table.name}/{relation.name}/{unit.name}"
            done = job.journal.done("ends", name)
            if done is None:
                sorter = _sorter(job, table, f"run-{relation.name}-{unit.name}", distinct=True)
                for each in unit.slices:
                    for frame in relation.reader.ids(each.file, columns, kinds, each.start, each.stop):
                        kept = frame.drop_nulls() if drops else frame
                        for side in sides:
                            sorter.push(kept, read.index(side), 0)
                done = _finish(job, sorter, "ends", name)
            yield done


def adds(job: Job, relation: RelationTable, side: int) -> bool:
    """Return whether an id of this side becomes a vertex where no table declares it."""
    return relation.entry.missing == "add" or job.catalog.vertices[_type(relation, side)].reader is None


def _type(relation: RelationTable, side: int) -> str:
    return (relation.source, relation.target)[side]


def _sorter(job: Job, table: VertexTable, name: str, distinct: bool) -> _core.IdSorter:
    folder = job.path("types", table.name, "ids").parent
    return _core.IdSorter(table.kind, folder, name, limit=job.sorting, distinct=distinct)


def _finish(job: Job, sorter: _core.IdSorter, stage: str, name: str) -> dict[str, Any]:
    runs = sorter.finish()
    counts = {"runs": [Path(path).name for path, _ in runs], "ids": sum(count for _, count in runs)}
    return job.journal.add(stage, name, [Path(path) for path, _ in runs], counts)


def _merge(
    job: Job, table: VertexTable, first: int, sorted_: list[dict[str, Any]], folder: Path
) -> dict[str, Any]:
    """Number the ids of all runs, and write keys, rows and ids."""
    most = sum(each["ids"] for each in sorted_)
    buckets = min(max(-(-int(PER_ID * most) // _TABLE), 1), _MOST_BUCKETS)
    keys = [folder / f"keys-{bucket:03}" for bucket in range(buckets)]
    units = job.units.get(f"vertices/{table.name}", [])
    rows = folder / "rows.u32" if units and _rows_wanted(table) else None
    numbering = _core.Numbering(
        table.kind,
        [folder / name for each in sorted_ for name in each["runs"]],
        keys,
        rows=None if rows is None else (rows, sum(unit.rows for unit in units)),
        first=table.entry.duplicates == "first",
        limit=job.sorting,
    )
    job.path("graph", "ids", table.name)
    ids = job.graph / "ids" / f"{table.name}.parquet"
    schema = {"id": table.dtype, "vertex": pl.UInt32}
    # Sorted ids hardly shrink further by zstd, which took as long as the merge.
    write_table(ids, schema, _batches(table, numbering, first), compression="lz4")
    if numbering.duplicate is not None:
        raise duplicate_id(table, *numbering.duplicate)
    facts = {"n": 0, "buckets": buckets, "blanks": numbering.blanks, "rows": rows is not None}
    facts["n"] = numbering.finish()
    if facts["blanks"]:
        log.info(
            "%s: %s ids differ from another one by blanks at their ends only",
            table.name,
            f"{facts['blanks']:,}",
        )
    files = [*keys, ids, *([] if rows is None else [rows])]
    return job.journal.add("number", table.name, files, facts)


def _rows_wanted(table: VertexTable) -> bool:
    entry = table.entry
    # A check finds in the rows which ids come twice.
    return bool(entry.features or entry.label or entry.split or entry.time) or checking()


def _batches(table: VertexTable, numbering: _core.Numbering, first: int) -> Iterator[pl.DataFrame]:
    at = first
    while (ids := numbering.next(IDS)) is not None:
        frame = pl.DataFrame(ids).with_columns(pl.col("id").cast(table.dtype))
        count = len(frame)
        if at + count > _MOST + 1:
            raise CapacityError(f"there are more than {_MOST:,} vertices of all types")
        yield frame.with_columns(vertex=pl.int_range(at, at + count, dtype=pl.UInt32, eager=True))
        at += count


def _refuse_nulls(table: VertexTable, reader: TableReader, file: int, first: int, ids: pl.Series) -> None:
    """Refuse ids that are null. The first of all has row ``first`` of the file."""
    rows = [first + row for row in ids.is_null().arg_true().to_list()]

    def error(each: int) -> GraphFormatError:
        return GraphFormatError(
            f"{reader.place(file, rows[each])}: column {ids.name!r}: the id is null. Every row of {table.name!r} needs "
            "one. Write it, or remove the row"
        )

    refuse_rows(reader, file, ids.name, rows, error)


def duplicate_id(table: VertexTable, id: str, *rows: int) -> GraphFormatError:
    """Return the refusal of two rows with one id."""
    assert table.reader is not None
    where = " and in ".join(place(table.reader, row) for row in rows)
    return GraphFormatError(
        f"{table.name}: the id {id!r} is in {where}. Remove one, or say `duplicates: first` in the schema"
    )
