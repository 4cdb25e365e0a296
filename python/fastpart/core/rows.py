"""Rows of features from files and arrays, read in chunks, and brought into the order of the vertices."""

from __future__ import annotations

import errno
import math
import os
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import GraphFormatError, GraphWarning, MemoryBudgetError, ParameterError, code, warn
from . import parameters
from .frames import before_polars_threads, pl
from .ids import Ids
from .inputs import match_vertices
from .notes import log
from .options import RunOptions
from .parameters import one_line, shown
from .parsing import Archive, damaged, mapped, named
from .row_groups import refuse_large, row_groups
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


def not_finite(rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return which rows hold NaN or an infinite number, ascending."""
    if rows.dtype.kind != "f" or np.isfinite(rows).all():
        return np.empty(0, np.int64)
    return np.flatnonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))


CHUNK_BYTES = 32 << 20
"""Largest chunk. A chunk has at least one row."""

ACCEPTED = (
    "a .npy, a scipy sparse .npz (CSR), a table (.parquet, .csv, .tsv, a frame), a numpy array, a torch tensor or a "
    "scipy sparse array"
)

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Rows:
    """Rows of one shape and dtype that need not fit in memory.

    Attributes
    ----------
    shape : tuple of int
        Number of rows, then the shape of a row.
    dtype : numpy.dtype
        Type of the values, in the byte order of this machine.
    read : callable
        ``read(start, stop)`` returns these rows.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[int, int], Array]

    def __len__(self) -> int:
        return self.shape[0]

    def chunks(self) -> Iterator[Array]:
        """Yield all rows in order, as C-contiguous arrays."""
        row_bytes = math.prod(self.shape[1:]) * self.dtype.itemsize
        step = max(CHUNK_BYTES // max(row_bytes, 1), 1)
        for start in range(0, len(self), step):
            rows = self.read(start, min(start + step, len(self)))
            yield np.ascontiguousarray(rows, dtype=self.dtype)


def rows_of(
    name: str, source: Any, memory_limit: int | None = None, fields: bool = False, without: str | None = None
) -> Rows:
    """Return the rows of a file or an array. Nothing is read yet, except for a sparse matrix.

    A dtype with ``fields`` is refused unless asked for. ``without`` is a column of a Parquet file that is left out.
    """
    if isinstance(source, str | bytes | os.PathLike):
        file = parameters.regular(parameters.path(name, source))
        return _of_file(name, file, memory_limit, fields, without)
    library = type(source).__module__.partition(".")[0]
    if library == "torch" and hasattr(source, "detach"):
        return _of_tensor(name, source)
    if library == "scipy" and hasattr(source, "tocsr"):
        matrix = source.tocsr()
        return _of_csr(name, matrix.data, matrix.indices, matrix.indptr, matrix.shape)
    if isinstance(source, np.ma.MaskedArray) or not isinstance(source, np.ndarray):
        raise TypeError(f"{name}: expected {ACCEPTED}, got {type(source).__name__}")
    return _of_array(name, source, fields)


def _of_file(name: str, file: Path, memory_limit: int | None, fields: bool, without: str | None) -> Rows:
    if file.suffix not in (".npy", ".npz", ".parquet"):
        raise ParameterError(f"{name}: unknown suffix {file.suffix!r} of {shown(file)}. Expected {ACCEPTED}")
    if not file.exists():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file))
    if file.suffix == ".npz":
        return _of_npz(name, file, memory_limit)
    return (
        _of_npy(name, file, fields)
        if file.suffix == ".npy"
        else _of_parquet(name, file, memory_limit, without)
    )


def _of_array(name: str, array: Array, fields: bool = False) -> Rows:
    if array.dtype.kind not in "biuf" and not (fields and array.dtype.names):
        raise TypeError(f"{name}: expected real numbers or bools, got dtype {array.dtype}")
    if array.ndim == 0:
        raise ParameterError(f"{name}: expected one row per item, got a single number")
    return Rows(array.shape, array.dtype.newbyteorder("="), lambda start, stop: array[start:stop])


def _of_tensor(name: str, tensor: Any) -> Rows:
    try:
        return _of_array(name, tensor.detach().cpu().numpy())
    except (TypeError, RuntimeError) as error:  # bfloat16, sparse, quantized, ...
        raise TypeError(
            f"{name}: the tensor cannot become a numpy array ({error}). Pass .float() of it"
        ) from None


def _of_npy(name: str, file: Path, fields: bool) -> Rows:
    array = mapped(file, "not a .npy array of numbers", fields)
    return _of_array(f"{name}: {shown(file)}", array, fields)


def _of_npz(name: str, file: Path, memory_limit: int | None) -> Rows:
    what = "not a scipy sparse matrix, as scipy.sparse.save_npz writes it"
    with damaged(file, what):
        members = Archive(file, what)
        budget = _core.memory_budget() if memory_limit is None else memory_limit
        if members.bytes > budget:
            raise MemoryBudgetError(
                f"{name}: the entries of {shown(file)} need {members.bytes / 1e6:.1f} MB of memory, but the budget is "
                f"{budget / 1e6:.1f} MB. Raise memory_limit, or save the rows as .npy"
            )
        form = members["format"].item()
        stored = [members[part] for part in ("data", "indices", "indptr", "shape")]
        if isinstance(form, bytes):
            form = form.decode()
        if form != "csr":
            raise ParameterError(
                f"{name}: {shown(file)} holds a matrix in format {form!r}. Save .tocsr() of it"
            )
        return _of_csr(f"{name}: {shown(file)}", *stored)


def _of_csr(name: str, data: Array, indices: Array, indptr: Array, shape: Any) -> Rows:
    """Return the rows of a CSR matrix. They are made dense when read. Duplicate entries are summed, as in scipy."""
    rows, columns = map(int, shape)
    if data.dtype.kind not in "biuf" or indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise TypeError(f"{name}: expected a sparse matrix of real numbers or bools, got dtype {data.dtype}")
    if (
        not data.ndim == indices.ndim == indptr.ndim == 1
        or min(rows, columns) < 0
        or len(indptr) != rows + 1
        or len(data) != len(indices)
        or indptr[0] != 0
        or indptr[-1] != len(indices)
        or np.any(indptr[1:] < indptr[:-1])
        or (len(indices) and not 0 <= indices.min() <= indices.max() < columns)
    ):
        raise GraphFormatError(
            f"{name}: the arrays of the sparse matrix of shape {rows, columns} contradict each other"
        )
    dtype = data.dtype.newbyteorder("=")

    def read(start: int, stop: int) -> Array:
        dense = np.zeros((stop - start, columns), dtype)
        inside = slice(indptr[start], indptr[stop])
        row = np.repeat(np.arange(stop - start), np.diff(indptr[start : stop + 1]))
        np.add.at(dense.reshape(-1), row * columns + indices[inside].astype(np.int64), data[inside])
        return dense

    return Rows((rows, columns), dtype, read)


def _of_parquet(name: str, file: Path, memory_limit: int | None, without: str | None) -> Rows:
    with ExitStack() as stack, damaged(file, "not a Parquet file of numbers"):
        opened = stack.enter_context(file.open("rb"))  # Polars opens only paths in UTF-8
        before_polars_threads(f"{name}: {shown(file)}")
        frame = pl.scan_parquet(opened)
        schema = {column: dtype for column, dtype in frame.collect_schema().items() if column != without}
        columns = [column for column, dtype in schema.items() if holds_numbers(dtype)]
        if not columns:
            raise ParameterError(f"{name}: {shown(file)} has no column of numbers")
        if ignored := [column for column in schema if column not in columns]:
            _warn_of_ignored(name, ignored)
        frame = frame.select(columns)
        rows = frame.select(pl.len()).collect().item()
        refuse_large(str(file), row_groups(str(file)), frame.collect_schema().dtypes(), memory_limit)
        dtype = np.result_type(*(column.to_numpy().dtype for column in frame.head(0).collect()))

        def read(start: int, stop: int) -> Array:
            with damaged(file, "not a Parquet file of numbers"):
                chunk = frame.slice(start, stop - start).collect()
            for column in chunk:
                if column.null_count():
                    row = start + (column.is_null().arg_max() or 0)
                    raise ParameterError(
                        f"{name}: column {column.name!r} of {shown(file)} is null in row {row}"
                    )
            return chunk.to_numpy()

        result = Rows((rows, len(columns)), dtype, read)
        weakref.finalize(
            result, stack.pop_all().close
        )  # the file stays open for all chunks, also if it is renamed
    return result


def holds_numbers(dtype: pl.DataType) -> bool:
    """Return whether a column of a table can be a number of a row."""
    return (dtype.is_numeric() and not dtype.is_decimal()) or dtype == pl.Boolean


STATISTICS = "feature_statistics.npy"
"""float64 of shape (2, shape of a row): what is subtracted from features, then what they are divided by."""

_BLOCK_BYTES = 4 << 20
"""Numbers that are counted at a time, as float64."""

Numbers = npt.NDArray[np.float64]


def standardised(
    features: Rows, train: npt.NDArray[np.bool_], kept: Sequence[int] = ()
) -> tuple[Rows, Numbers]:
    """Return standardised rows in float64, and the statistics that make them. Columns that are ``kept`` do not change.

    ``train`` tells the training vertices. Their rows are read once, in blocks, and the moments of the blocks are merged
    in order (Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979).
    """
    if not train.any():
        raise ParameterError("standardise: the splits have no training vertices. Name them as train")
    statistics = _statistics(features, train).reshape(2, *features.shape[1:])
    if kept:
        statistics[:, kept] = np.array([[0.0], [1.0]])
    mean, deviation = statistics

    def read(start: int, stop: int) -> Array:
        rows = features.read(start, stop).astype(np.float64)
        rows -= mean
        rows /= deviation
        return rows

    return Rows(features.shape, np.dtype(np.float64), read), statistics


def _statistics(features: Rows, train: npt.NDArray[np.bool_]) -> Numbers:
    width = math.prod(features.shape[1:])
    count, (mean, squares) = 0, np.zeros((2, width))
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    for rows in _blocks(features, train, width):
        known, count = count, count + len(rows)
        difference = rows.mean(axis=0) - mean
        squares += np.square(rows - rows.mean(axis=0)).sum(axis=0)
        squares += np.square(difference) * (known * len(rows) / count)
        mean += difference * (len(rows) / count)
        np.minimum(low, rows.min(axis=0), out=low)
        np.maximum(high, rows.max(axis=0), out=high)
    # Rounding would give a constant column a tiny deviation, and other vertices huge numbers.
    constant = low == high
    return np.stack([np.where(constant, low, mean), np.where(constant, 1, np.sqrt(squares / count))])


def _blocks(features: Rows, train: npt.NDArray[np.bool_], width: int) -> Iterator[Numbers]:
    """Yield the rows of the training vertices as float64. Refuse those that have no mean."""
    step = max(_BLOCK_BYTES // (8 * max(width, 1)), 1)
    for start in range(0, len(features), step):
        chosen = np.flatnonzero(train[start : start + step])
        if not len(chosen):
            continue
        block = features.read(start, min(start + step, len(features)))
        rows = block[chosen].reshape(len(chosen), width).astype(np.float64)
        wrong = ~np.isfinite(rows).all(axis=1)
        if wrong.any():
            row = start + int(chosen[wrong.argmax()])
            raise ParameterError(
                f"features: row {row} of a training vertex has no finite numbers to standardise"
            )
        yield rows


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
    match_vertices(name, len(rows), n, ids)
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
        _warn_of_ignored(table.where, ignored)
    for column in kept:
        if column.null_count():
            raise ParameterError(f"{table.column(column.name)} is null in row {column.is_null().arg_max()}")
    frame = columns.select(kept)
    dtype = np.result_type(*(column.to_numpy().dtype for column in frame.head(0).iter_columns()))
    if vertices is None:
        return Rows(frame.shape, dtype, lambda start, stop: frame[start:stop].to_numpy())
    order = np.argsort(vertices)
    return Rows(frame.shape, dtype, lambda start, stop: frame[order[start:stop]].to_numpy())


def _warn_of_ignored(where: str, columns: Iterable[str]) -> None:
    makes = code("fp.ingest makes", "`fastpart ingest` makes")
    warn(
        f"{where}: ignored the columns {', '.join(map(one_line, columns))}, which hold no numbers. {makes} numbers of "
        "categories and dates",
        GraphWarning,
    )


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
