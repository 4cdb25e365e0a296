"""Rows that a user gives for vertices, brought into the order of the vertices. They need not fit in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ParameterError
from .ids import Ids
from .inputs import match_vertices
from .notes import log
from .options import RunOptions
from .parameters import one_line, shown
from .parsing import named
from .rows import CHUNK_BYTES, Array, Rows, holds_numbers, rows_of
from .vertex_tables import (
    InOrder,
    Table,
    Vertices,
    file_of,
    holder_of,
    in_order,
    matched,
    numbers_of_text,
    refuse_incomplete,
    table_of,
    vertices_of,
)


def rows_of_vertices(
    name: str, given: Any, n: int, ids: Ids, options: RunOptions, *, fields: bool = False
) -> Rows:
    """Return one row per vertex of a file, a frame or an array.

    Rows beside a column of ids are matched by it. Those of a file go to a temporary file then, unless they are in the
    order of the vertices already.
    """
    if isinstance(given, InOrder):
        rows = rows_of(name, given.rows, options.memory_limit, fields)
    elif (file := file_of(name, given)) is not None and file.suffix == ".parquet":
        where = f"{name}: {shown(file)}"
        holder = holder_of(where, file, ids)
        rows = rows_of(name, given, options.memory_limit, fields, without=holder and holder[1])
        if holder is not None:
            table, column = holder
            log.info(
                "%s: column %s holds the ids, and decides which vertex a row is of", name, one_line(column)
            )
            vertices = vertices_of(table.column(column), table.frame[column], n, ids)
            refuse_incomplete(where, vertices, n, ids)
            return _reordered(rows, vertices, options)
        in_order(name, ids)
    elif (table_ := table_of(name, given)) is not None:
        vertices_, columns = matched(table_, n, ids, (), several=True)
        if vertices_ is not None:
            refuse_incomplete(table_.where, vertices_, n, ids)
        return _of_frame(table_, columns, vertices_)
    else:
        rows = rows_of(name, given, options.memory_limit, fields)
        in_order(name, ids)
    match_vertices(name, len(rows), n)
    return rows


def rows_of_records(name: str, given: Any, options: RunOptions) -> Rows:
    """Return the rows of a file, a frame or an array, in their order."""
    if file_of(name, given) is None or not str(given).endswith(".parquet"):
        table = table_of(name, given)
        if table is not None:
            return _of_frame(table, table.frame, None)
    return rows_of(name, given, options.memory_limit)


def _of_frame(table: Table, columns: Any, vertices: Vertices | None) -> Rows:
    """Return the columns of numbers of a frame, in the order of the vertices."""
    numbers = {
        column.name: numbers_of_text(column) if table.of_file else column for column in columns.iter_columns()
    }
    kept = [column for column in numbers.values() if column is not None and holds_numbers(column.dtype)]
    if not kept:
        raise ParameterError(f"{table.where} has no column of numbers")
    if ignored := [name for name in numbers if name not in {each.name for each in kept}]:
        log.info("%s: ignored the columns %s, which hold no numbers", table.where, ", ".join(ignored))
    for column in kept:
        if column.null_count():
            raise ParameterError(f"{table.column(column.name)} is null in row {column.is_null().arg_max()}")
    frame = columns.select(kept)
    dtype = np.result_type(*(column.to_numpy().dtype for column in frame.head(0).iter_columns()))
    if vertices is None:
        return Rows(frame.shape, dtype, lambda start, stop: frame[start:stop].to_numpy())
    order = np.argsort(vertices)
    return Rows(frame.shape, dtype, lambda start, stop: frame[order[start:stop]].to_numpy())


def _reordered(rows: Rows, vertices: Vertices, options: RunOptions) -> Rows:
    """Return rows of which the one at i is of vertex ``vertices[i]``, in the order of the vertices."""
    if np.array_equal(vertices, np.arange(len(vertices))):
        return rows
    ordered = _room(rows, options)
    at = 0
    for chunk in rows.chunks():
        ordered[vertices[at : at + len(chunk)]] = chunk
        at += len(chunk)
    return Rows(rows.shape, rows.dtype, lambda start, stop: ordered[start:stop])


def _room(rows: Rows, options: RunOptions) -> Array:
    """Return an array for all rows. A large one is mapped from a nameless file."""
    size = int(np.prod(rows.shape)) * rows.dtype.itemsize
    if size <= CHUNK_BYTES:
        return np.empty(rows.shape, rows.dtype)
    import tempfile  # here, because its import is slow

    with named(options.tmp_dir or tempfile.gettempdir()), tempfile.TemporaryFile(dir=options.tmp_dir) as file:
        zeros = bytes(1 << 20)
        for start in range(0, size, len(zeros)):  # a full disk is noticed here, and not in the map
            file.write(zeros[: size - start])
        file.flush()
        return np.memmap(file, rows.dtype, "r+", shape=rows.shape)
