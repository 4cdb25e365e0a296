"""A check: all that an ingest of a schema would refuse, at once.

The stages of the ingest run over the tables in a temporary folder, with the same readers and conversions. Their
refusals are noted. Rows without an id, with an id that comes twice or with one that no table declares are dropped, and
noted afterwards. The values of all columns are converted and forgotten. Where nothing is refused, weights and
standardised features are also written, since only the whole of them may be.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from ...core.frames import pl
from ...core.options import RunOptions
from ...errors import GraphFormatError
from .catalog import Catalog, RelationTable, VertexTable, Vocabularies, open_catalog
from .columns import Columns, RelationColumns, VertexColumns
from .columns.rows import LEFT_OUT, Mask, Slots, pieces
from .columns.surveys import Survey, surveyed
from .problems import Problems, attempted, noted, refuse_rows
from .schema import Schema
from .stages.attributes import finish, write_record_attributes, write_vertex_attributes
from .stages.ids import adds, duplicate_id, number_types
from .stages.job import Job, NumberedType, Slice, units_of
from .stages.records import Records, null_end, unknown_end, write_records
from .tables import dtype_of

_MOST = 100_000
"""Dropped records of a slice that are looked up."""

_VERTICES = 1 << 20
"""Rows that are looked at at a time."""


def check(schema: Schema, root: str, run: RunOptions, vocabularies: Vocabularies | None) -> Problems:
    """Return all that an ingest of a schema would refuse."""
    with noted() as notes, tempfile.TemporaryDirectory(prefix="fastpart-check-", dir=run.tmp_dir) as folder:
        catalog = open_catalog(schema, root, run, vocabularies)
        job = Job(_lenient(catalog), Path(folder, "graph"), run, False, False, {"shards": None})
        try:
            types = number_types(job)
            records = {each.relation.name: each for each in write_records(job, types)}
            for name in types:
                _note_duplicates(job, catalog, types[name])
            for each in records.values():
                _note_dropped(job, catalog, each, types)
            _check_columns(job, catalog, types, records)
            if not notes.result() and _whole_counts(catalog):
                attempted("", _finish, job, types, [*records.values()])
        finally:
            job.close(True)
        return notes.result()


def _lenient(catalog: Catalog) -> Catalog:
    """Return the tables whose ids can be compared, so that rows are dropped where an ingest refuses them."""
    vertices = {
        name: replace(table, entry=msgspec.structs.replace(table.entry, duplicates="first"))
        for name, table in catalog.vertices.items()
        if table.sure
    }
    relations = {}
    for name, table in catalog.relations.items():
        if {table.source, table.target} <= vertices.keys():
            missing = "add" if table.entry.missing == "add" else "drop"
            entry = msgspec.structs.replace(table.entry, nulls="drop", missing=missing)
            relations[name] = replace(table, entry=entry)
    return replace(catalog, vertices=vertices, relations=relations)


def _finish(job: Job, types: Mapping[str, NumberedType], records: list[Records]) -> None:
    attributes = {
        "types": write_vertex_attributes(job, types),
        "relations": write_record_attributes(job, records),
    }
    finish(job, types, records, attributes)


def _whole_counts(catalog: Catalog) -> bool:
    """Whether a table has columns that may be refused as a whole: weights, and what is standardised."""
    tables: list[VertexTable | RelationTable] = [*catalog.vertices.values(), *catalog.relations.values()]
    return any(each.standardise for table in tables for each in table.features) or any(
        table.entry.weight for table in catalog.relations.values()
    )


def _slices(job: Job, name: str) -> Iterator[Slice]:
    return (each for unit in job.units.get(name, ()) for each in unit.slices)


def _rows_of(job: Job, type_: str) -> npt.NDArray[np.uint32]:
    """Return the vertex of each row of a type."""
    file = job.path("types", type_, "rows.u32")
    return (
        np.memmap(file, np.uint32, "r") if file.exists() and file.stat().st_size else np.empty(0, np.uint32)
    )


def _note_duplicates(job: Job, catalog: Catalog, numbered: NumberedType) -> None:
    """Refuse the rows whose id an earlier row has."""
    table = catalog.vertices[numbered.name]
    if table.reader is None or table.id_column is None or table.entry.duplicates == "first":
        return
    reader, column, vertices = table.reader, table.id_column, _rows_of(job, numbered.name)

    def id_of(row: int) -> Any:
        of = f"vertices/{numbered.name}"
        each = next(each for each in _slices(job, of) if row < each.first + each.rows)
        start = each.start + row - each.first
        return next(reader.ids(each.file, [column], [table.kind], start, start + 1)).item()

    def error(found: list[int], number: int) -> GraphFormatError:
        row = found[number]
        id = id_of(row)
        ids = pl.scan_parquet(job.graph / "ids" / f"{numbered.name}.parquet")
        same = ids.filter(pl.col("id").cast(dtype_of(table.kind)) == pl.lit(id, dtype_of(table.kind)))
        vertex = same.collect()["vertex"].item() - numbered.first
        # A row without an id has vertex 0 as well.
        earlier = next(
            each for each in np.flatnonzero(vertices[:row] == vertex).tolist() if id_of(each) == id
        )
        return duplicate_id(table, id.hex() if isinstance(id, bytes) else str(id), earlier, row)

    for each in _slices(job, f"vertices/{numbered.name}"):
        for start in range(each.first, each.first + each.rows, _VERTICES):
            stop = min(start + _VERTICES, each.first + each.rows)
            found = (np.flatnonzero(vertices[start:stop] == LEFT_OUT) + start).tolist()
            rows = [row - each.first + each.start for row in found]
            refuse_rows(reader, each.file, column, rows, partial(error, found), "duplicate")


def _note_dropped(job: Job, catalog: Catalog, records: Records, types: Mapping[str, NumberedType]) -> None:
    """Refuse the records that were dropped and that the schema does not say to drop."""
    relation = catalog.relations[records.relation.name]
    for unit in job.units[f"relations/{relation.name}"]:
        if unit.name not in records.kept:
            continue
        kept = np.fromfile(records.kept[unit.name], np.bool_)
        for each in unit.slices:
            before = each.first - unit.first
            dropped = np.flatnonzero(~kept[before : before + each.rows])[:_MOST]
            for frame in _records(relation, each, dropped, types):
                _note_ends(job, catalog, relation, each.file, frame)


def _records(
    relation: RelationTable, each: Slice, wanted: npt.NDArray[Any], types: Mapping[str, NumberedType]
) -> Iterator[pl.DataFrame]:
    """Yield the ids of some records of a slice, and ``row``, their rows."""
    kinds = [types[name].kind for name in (relation.source, relation.target)]
    first = 0
    for frame in relation.reader.ids(each.file, relation.columns, kinds, each.start, each.stop):
        mine = wanted[(wanted >= first) & (wanted < first + len(frame))]
        if len(mine):
            yield frame[mine - first].with_columns(row=pl.Series(mine + each.start))
        if not len(wanted) or wanted[-1] < first + len(frame):
            return
        first += len(frame)


def _note_ends(job: Job, catalog: Catalog, relation: RelationTable, file: int, frame: pl.DataFrame) -> None:
    """Refuse the ids of dropped records that are null, or that no table declares."""
    for side, name in enumerate((relation.source, relation.target)):
        ids, reader = frame[relation.columns[side]], catalog.vertices[name].reader
        if relation.entry.nulls == "error":
            _refuse_ends(relation, file, frame.filter(ids.is_null()), ids.name, None)
        declared = reader is not None and reader.whole and not adds(job, relation, side)
        if relation.entry.missing == "error" and declared:
            table = pl.scan_parquet(job.graph / "ids" / f"{name}.parquet").select(
                pl.col("id").cast(ids.dtype)
            )
            known = table.filter(pl.col("id").is_in(ids.unique().implode())).collect()["id"]
            unknown = frame.filter(ids.is_not_null() & ~ids.is_in(known.implode()))
            _refuse_ends(relation, file, unknown, ids.name, name)


def _refuse_ends(
    relation: RelationTable, file: int, frame: pl.DataFrame, column: str, type_: str | None
) -> None:
    """Refuse records whose id in a column is no id of a type, or null."""
    rows, ids = frame["row"].to_list(), frame[column].to_list()

    def error(each: int) -> GraphFormatError:
        at = relation.reader.place(file, rows[each])
        if type_ is None:
            return null_end(relation, at)
        return GraphFormatError(unknown_end(relation, at, column, ids[each], type_))

    refuse_rows(relation.reader, file, column, rows, error, type_)


def _check_columns(
    job: Job, catalog: Catalog, types: Mapping[str, NumberedType], records: Mapping[str, Records]
) -> None:
    """Convert the values of all rows that an ingest keeps, or would if nothing were refused before."""
    for name, table in catalog.vertices.items():
        if table.reader is None:
            continue
        first = table.entry.duplicates == "first" and name in types
        vertices = _rows_of(job, name) if first else None
        _check_table(f"vertices.{name}", table, partial(_first_of, vertices))
    for name, relation in catalog.relations.items():
        _check_table(f"relations.{name}", relation, partial(_kept_of, job, relation, records.get(name)))


def _check_table(
    where: str, table: VertexTable | RelationTable, kept: Callable[[Slice], Mask | None]
) -> None:
    assert table.reader is not None
    columns = CheckedColumns(where, table)
    for each in (piece for unit in units_of(table.reader) for piece in unit.slices):
        attempted(where, columns.check, each.file, each.start, each.stop, kept(each))


def _first_of(vertices: npt.NDArray[np.uint32] | None, each: Slice) -> Mask | None:
    """Return which rows of a slice are the first of their id."""
    return None if vertices is None else vertices[each.first : each.first + each.rows] != LEFT_OUT


def _kept_of(job: Job, relation: RelationTable, records: Records | None, each: Slice) -> Mask | None:
    """Return which rows of a slice the schema does not say to drop."""
    entry = relation.entry
    drops = {"null": entry.nulls == "drop", "unknown": entry.missing == "drop"}
    if not any(drops.values()):
        return None
    nulls = pl.concat(
        frame.select(pl.any_horizontal(pl.all().is_null())).to_series()
        for frame in relation.reader.batches(each.file, relation.columns, each.start, each.stop)
    ).to_numpy()
    dropped = np.zeros(each.rows, np.bool_)
    kept_by = {} if records is None else records.kept
    for unit in job.units.get(f"relations/{relation.name}", ()):
        if unit.first <= each.first < unit.first + unit.rows and unit.name in kept_by:
            kept = np.fromfile(kept_by[unit.name], np.bool_)
            dropped = ~kept[each.first - unit.first : each.first - unit.first + each.rows]
    kept_rows: Mask = ~((nulls & drops["null"]) | (dropped & ~nulls & drops["unknown"]))
    return kept_rows


_ROWS = 1 << 16
"""At most 65,536 rows are converted at a time."""

_USES = ("time", "label", "split", "weight")


class CheckedColumns:
    """All columns of a table, each by itself, so that a refusal of one leaves the others. Files are read once for all.

    The files are surveyed as it is made.
    """

    def __init__(self, where: str, table: VertexTable | RelationTable) -> None:
        assert table.reader is not None
        self._where, self._reader = where, table.reader
        tried = [attempted(where, _columns_of, each) for each in _single(table)]
        made = [each for each in tried if each is not None and each.wanted]
        surveys = [attempted(where, self._survey, made, number) for number in range(len(self._reader.files))]
        known = [each for each in surveys if each is not None]
        ready = (
            [attempted(where, _prepared, each, known) for each in made] if len(known) == len(surveys) else []
        )
        self._made = [each for each in ready if each is not None]

    def _survey(self, made: Sequence[Columns], number: int) -> dict[str, Any]:
        facts = [fact for each in made for fact in each._facts(number)]
        widths = {name: width for each in made for name, width in each._widths(number).items()}
        return surveyed(self._reader, number, facts) | ({"widths": widths} if widths else {})

    def check(self, number: int, start: int, stop: int, kept: Mask | None) -> None:
        """Convert rows start..stop of file ``number``. ``kept`` tells those that an ingest keeps. None: all."""

        def place(first: int, end: int) -> tuple[Mask | None, Slots]:
            given = None if kept is None else kept[first:end]
            return given, slice(0, end - first if given is None else int(given.sum()))

        if not self._made:
            return
        columns = sorted({name for each in self._made for name in each._columns()})
        rows = min(_ROWS, *(each._layout.rows for each in self._made if each._layout is not None), _ROWS)
        for piece in pieces(self._reader, number, columns, start, stop, rows, place):
            for each in self._made:
                arrays = {
                    key: np.empty((len(piece.frame), *shape[1:]), dtype)
                    for key, (_, shape, dtype) in each._arrays().items()
                }
                attempted(self._where, each._write, piece, arrays)


def _single(table: VertexTable | RelationTable) -> Iterator[VertexTable | RelationTable]:
    """Yield the table with one of its columns at a time. Shares of a split have no column."""
    uses = [use for use in _USES if hasattr(table.entry, use)]
    bare: Any = msgspec.structs.replace(table.entry, features=[], **dict.fromkeys(uses))
    for feature in table.features:
        yield replace(table, entry=bare, features=(feature,))
    for use in uses:
        if isinstance(column := getattr(table.entry, use), str):
            yield replace(table, entry=msgspec.structs.replace(bare, **{use: column}), features=())


def _columns_of(table: VertexTable | RelationTable) -> Columns:
    rows = 0 if table.reader is None else table.reader.rows
    return RelationColumns(table, rows) if isinstance(table, RelationTable) else VertexColumns(table, rows)


def _prepared(columns: Columns, surveys: Sequence[Survey]) -> Columns:
    columns._prepare(surveys)
    return columns
