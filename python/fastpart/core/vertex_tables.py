"""What a user gives for vertices, matched with the vertices of a graph: by their ids, else in their order.

Tables are text with separators, Parquet, and the frames and series of Polars, pandas and Arrow. A column of a table
that holds the ids of the graph decides which vertex a row is of. Arrays have no ids, so row i is that of vertex i.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import GraphFormatError, GraphWarning, ParameterError, code, warn
from .frames import before_polars_threads, pl
from .ids import Ids
from .notes import log
from .parameters import one_line, path, regular, shown
from .parsing import damaged
from .protocols import Assignment
from .row_groups import refuse_large, row_groups
from .text_files import refuse_filling

Vertices = npt.NDArray[np.int64]

_TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_VERTEX = ("vertex", "vertex_id", "node", "node_id", "id")
_LABEL = ("label", "labels", "y", "class", "target", "category")
_SPLIT = ("split", "set", "subset", "fold")
_NAMES = ("train", "val", "test")
_NUMBER = {
    "times": ("time", "times", "timestamp", "created", "date"),
    "balance_on": ("weight", "weights"),
    "fixed": ("part", "parts", "fixed"),
    "partition": ("part", "parts", "partition", "cluster"),
}
"""Names of the column with the number of a vertex, by the parameter that takes it."""

_SPLITS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}

_MOST_UNKNOWN = 0.5
"""A column with a larger share of ids is the column of the ids. Its other values are refused."""


@dataclass(frozen=True)
class InOrder:
    """Rows that are known to be in the order of the vertices, as those in a graph directory are."""

    rows: Any


@dataclass(frozen=True)
class Table:
    """Rows of a user, with names of their columns.

    Attributes
    ----------
    where : str
        What messages call it: the parameter, and the file or the frame.
    frame : polars.DataFrame
        The rows.
    index : polars.Series or None
        The index of pandas, unless it counts the rows.
    of_file : bool
        Whether it was read from a file.
    """

    where: str
    frame: pl.DataFrame
    index: pl.Series | None = None
    of_file: bool = False

    def column(self, name: str) -> str:
        """Return what messages call a column."""
        return f"{self.where}: column {one_line(name)}"


def is_table(file: Path) -> bool:
    """Return whether a file is a table by its suffix."""
    return file.suffix == ".parquet" or file.name.endswith(_TEXT)


def file_of(name: str, given: Any) -> Path | None:
    """Return the path of a table in a file."""
    if not isinstance(given, str | bytes | os.PathLike):
        return None
    file = path(name, given)
    return file if is_table(file) else None


def table_of(name: str, given: Any) -> Table | None:
    """Return a table of a file, a frame or a series. None for arrays and whatever else."""
    if (file := file_of(name, given)) is not None:
        return Table(f"{name}: {shown(file)}", _read(name, file), of_file=True)
    library = _library(given)
    if library is None:
        return None
    before_polars_threads(f"{name}: a frame")
    if library == "pandas":
        return _of_pandas(name, given)
    if library == "polars":
        lazy = hasattr(given, "collect")
        given = given.collect() if lazy else given
        frame = given if hasattr(given, "columns") else given.to_frame()
    else:
        made: Any = pl.from_arrow(given) if library == "pyarrow" else pl.DataFrame(given)
        frame = made if isinstance(made, pl.DataFrame) else made.to_frame()
    return Table(f"{name}: the {'frame' if frame.width > 1 else 'series'}", frame)


def _library(given: Any) -> str | None:
    """Return the library of a frame or a series, which need not be installed for others."""
    if given is None or isinstance(given, np.ndarray | Assignment | Mapping | list | tuple):
        return None
    names = {each.__module__.partition(".")[0] for each in type(given).__mro__}
    if "polars" in names and (hasattr(given, "collect_schema") or hasattr(given, "to_frame")):
        return "polars"
    if "pandas" in names and hasattr(given, "iloc"):
        return "pandas"
    if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
        return "pyarrow" if "pyarrow" in names else "arrow"
    return None


def _of_pandas(name: str, given: Any) -> Table:
    if given.ndim == 2:
        columns = [_series(str(each), given.iloc[:, place]) for place, each in enumerate(given.columns)]
    else:
        columns = [_series("" if given.name is None else str(given.name), given)]
    if len({each.name for each in columns}) < len(columns):
        raise GraphFormatError(f"{name}: two columns of the frame have one name")
    index = given.index
    counts = index.nlevels > 1 or (
        index.name is None and index.dtype.kind == "i" and np.array_equal(index, np.arange(len(index)))
    )
    what = f"{name}: the {'frame' if given.ndim == 2 else 'series'}"
    return Table(
        what,
        pl.DataFrame(columns),
        None if counts else _series(str(index.name or "index"), index.to_series()),
    )


def _series(name: str, column: Any) -> pl.Series:
    """Return a column of pandas."""
    if getattr(column.dtype, "kind", "O") in "biufM" and not hasattr(column.dtype, "categories"):
        values = column.to_numpy()
        if isinstance(values, np.ndarray) and values.dtype.kind in "biufM":
            return pl.Series(name, values, nan_to_null=True)
    missing = column.isna().to_numpy()
    values = [None if gone else each for each, gone in zip(column.tolist(), missing, strict=True)]
    return pl.Series(name, values, strict=False)


# Which vertex each row is of.


def matched(
    table: Table, n: int, ids: Ids, known: Sequence[str], *, several: bool = False
) -> tuple[Vertices | None, pl.DataFrame]:
    """Return the vertex of each row, and the columns that are wanted.

    Parameters
    ----------
    table : Table
        What the user gave.
    n : int
        Number of vertices.
    ids : sequence of IdTable
        Their ids.
    known : sequence of str
        Names of the one column that is wanted.
    several : bool
        Whether all columns but that of the vertices are wanted.

    Returns
    -------
    tuple
        The vertices are None if row i is that of vertex i.
    """
    frame, where = table.frame, table.where
    name = where.partition(":")[0]
    of_vertex, places = _places(table, ids, known, several)
    columns = frame.select(frame.columns[place] for place in places)
    if of_vertex is not None:
        holder = frame.columns[of_vertex]
        if several or frame.width > 2:
            log.info(
                "%s: column %s holds the ids, and decides which vertex a row is of", name, one_line(holder)
            )
        return vertices_of(table.column(holder), frame[holder], n, ids), columns
    if table.index is not None:
        return vertices_of(f"{where}: the index", table.index, n, ids), columns
    if len(frame) != n:
        raise ParameterError(
            f"{where} has {len(frame)} rows for {n} vertices, and no column that says which. Add one named 'vertex'"
        )
    in_order(name, ids)
    return None, columns


def _places(table: Table, ids: Ids, known: Sequence[str], several: bool) -> tuple[int | None, list[int]]:
    """Return the place of the column of the vertices, if there is one, and the places of those that are wanted."""
    names = table.frame.columns
    small = [column.strip().lower() for column in names]
    wanted = [place for place, column in enumerate(small) if column in known]
    if len(small) == 1 and not several:
        return None, [0]
    of_vertex = _column_of_ids(table, small, ids, wanted)
    rest = [place for place in range(len(small)) if place != of_vertex]
    if several:
        return of_vertex, rest
    if len(small) == 2 and of_vertex is None and table.index is None:
        of_vertex = 0 if not wanted else 1 - wanted[0]
        rest = [1 - of_vertex]
    wanted = wanted or rest
    if len(wanted) != 1 or (of_vertex is None and table.index is None):
        raise ParameterError(
            f"{table.where} has the columns {', '.join(map(one_line, names))}. Name the one of the vertices 'vertex' "
            f"and the other one {known[0]!r}"
        )
    return of_vertex, wanted


def _column_of_ids(table: Table, small: Sequence[str], ids: Ids, wanted: Sequence[int]) -> int | None:
    """Return the column that says which vertex a row is of: by its name, else because it holds the ids of the graph."""
    for name in _VERTEX:
        if name in small:
            return small.index(name)
    if len(ids) != 1:
        return None
    shares = {
        place: _share_of_ids(column, ids)
        for place, column in enumerate(table.frame.iter_columns())
        if place not in wanted
    }
    most = max(shares.values(), default=0)
    best = [place for place, share in shares.items() if share == most]
    if most <= _MOST_UNKNOWN:
        return None
    if len(best) > 1:
        names = " and ".join(one_line(table.frame.columns[place]) for place in best)
        raise ParameterError(
            f"{table.where}: the columns {names} hold ids. Name the one of the vertices 'id'"
        )
    return best[0]


def _share_of_ids(column: pl.Series, ids: Ids) -> float:
    """Return the share of the values that are ids. Numbers must differ from each other, as counts rarely do."""
    if not len(column) or not _may_be_ids(column.dtype, ids):
        return 0.0
    if ids[0].dtype.is_numeric() and column.n_unique() < len(column):
        return 0.0
    return 1 - ids[0].numbers_of(column).null_count() / len(column)


def vertices_of(at: str, column: pl.Series, n: int, ids: Ids, *, unique: bool = True) -> Vertices:
    """Return the vertices that a column names: by their ids, or by their numbers where they have none.

    Parameters
    ----------
    at : str
        What messages call the column.
    column : polars.Series
        Ids or numbers.
    n, ids
        The vertices.
    unique : bool
        Whether each may be there once only.
    """
    if column.null_count():
        raise GraphFormatError(f"{at}, row {column.is_null().arg_max()}: the vertex is missing")
    if ids:
        numbers = _looked_up(at, column, ids)
    else:
        cast = numbers_of_text(column)
        if cast is None or not (cast.dtype.is_integer() or len(cast) == 0):
            raise GraphFormatError(
                f"{at}: expected vertices 0..{n - 1}, got {one_line(column[0], 40)!r}. The graph has no ids: open it "
                "from the table with its ids"
            )
        numbers = cast.cast(pl.Int64).to_numpy()
    outside = np.flatnonzero((numbers < 0) | (numbers >= n))
    if outside.size:
        raise ParameterError(f"{at}, row {outside[0]}: {numbers[outside[0]]} is outside 0..{n - 1}")
    order = np.argsort(numbers, kind="stable")
    twice = np.flatnonzero(np.diff(numbers[order]) == 0)
    if unique and twice.size:
        first, second = order[twice[0]], order[twice[0] + 1]
        raise ParameterError(
            f"{at}: rows {first} and {second} are of the same vertex, {one_line(column[int(first)], 40)}. Remove one"
        )
    return numbers


def _looked_up(at: str, column: pl.Series, ids: Ids) -> Vertices:
    """Return the vertices of the ids that they had in tables."""
    if len(ids) > 1:
        raise ParameterError(
            f"{at}: the graph has the types {', '.join(each.name for each in ids)}, each with ids of its own. Give a "
            "table for each type"
        )
    vertices = ids[0].numbers_of(column)
    if unknown := vertices.null_count():
        row = vertices.is_null().arg_max() or 0
        why = f"{at}, row {row}: no vertex has the id {one_line(column[row], 40)!r}"
        if 1 < unknown == len(column):
            known = ids[0].scanned().head(1).collect()["id"].to_list()
            such = f", such as {one_line(known[0], 40)!r}" if known else ""
            raise ParameterError(
                f"{why}, and none of the others is one. Give a table with a column of ids{such}"
            )
        others = f", and {unknown - 1:,} other rows have unknown ids" if unknown > 1 else ""
        raise ParameterError(f"{why}{others}. Leave such rows out")
    return vertices.cast(pl.Int64).to_numpy()


def in_order(name: str, ids: Ids, *, numbers: bool = False) -> None:
    """Warn that rows without ids, or numbers of vertices, go by the order of the vertices, if these have ids."""
    if all(each.are_numbers for each in ids):
        return
    taken = "whole numbers count the vertices from 0" if numbers else "without ids row i is that of vertex i"
    remedy = "Pass ids as a series" if numbers else "A table with a column of ids is matched by it"
    listing = code('fp.store.restore(p, graph=graph)["id"] lists', "`fastpart restore` lists")
    warn(
        f"{name}: the vertices of the graph have ids, but {taken}. {listing} the ids in this order. {remedy}",
        GraphWarning,
    )


def refuse_incomplete(where: str, vertices: Vertices, n: int, ids: Ids) -> None:
    """Refuse rows that leave out a vertex."""
    if len(vertices) == n:
        return
    missing = np.ones(n, np.bool_)
    missing[vertices] = False
    first, more = int(missing.argmax()), int(missing.sum()) - 1
    named = repr(one_line(ids[0].id_of(first), 40)) if ids else str(first)
    what = f"the vertices {named} and {more:,} others have" if more else f"the vertex {named} has"
    raise ParameterError(f"{where}: {what} no row. Every vertex needs one")


def holder_of(where: str, file: Path, ids: Ids) -> tuple[Table, str] | None:
    """Return the column of a Parquet file that says which vertex a row is of, in a table without most others."""
    before_polars_threads(where)
    with (
        damaged(regular(file), "not a Parquet file of numbers"),
        file.open("rb") as opened,  # Polars opens only paths in UTF-8
    ):
        scanned = pl.scan_parquet(opened)
        names = [
            name
            for name, dtype in scanned.collect_schema().items()
            if name.strip().lower() in _VERTEX or (len(ids) == 1 and _may_be_ids(dtype, ids))
        ]
        dtypes = [scanned.collect_schema()[name] for name in names]
        refuse_large(str(file), row_groups(str(file)), dtypes, whole=True)
        table = Table(where, scanned.select(names).collect(), of_file=True)
    place = _column_of_ids(table, [name.strip().lower() for name in names], ids, ())
    return None if place is None else (table, names[place])


def _may_be_ids(dtype: Any, ids: Ids) -> bool:
    text = dtype in (pl.String, pl.Categorical, pl.Enum, pl.Binary)
    return text or (dtype.is_integer() and ids[0].dtype.is_numeric())


# What the columns hold.


def labels_in(table: Table, n: int, ids: Ids) -> npt.NDArray[Any]:
    """Return the label of each vertex: int64, where -1 is none, or float64, where NaN is none."""
    vertices, columns = matched(table, n, ids, _LABEL)
    values = labels_in_column(columns.to_series())
    labels: npt.NDArray[Any] = np.full(n, np.nan if values.dtype.kind == "f" else -1)
    labels[slice(None) if vertices is None else vertices] = values
    return labels


def labels_in_column(column: pl.Series, name: str = "labels") -> npt.NDArray[Any]:
    """Return the label of each row: int64, where -1 is none, or float64, where NaN is none."""
    values = numbers_of_text(column)
    if values is None:
        column = column.cast(pl.String)
        known = column.drop_nulls().unique().sort()
        log.info(
            "%s: the %d values of column %s are numbered in their order",
            name,
            len(known),
            one_line(column.name),
        )
        values = pl.Series(column.name, np.searchsorted(known.to_numpy(), column.fill_null("").to_numpy()))
        values = pl.select(pl.when(column.is_null()).then(None).otherwise(values)).to_series()
    whole = values.dtype.is_integer()
    cast = values.cast(pl.Int64 if whole else pl.Float64, strict=False)
    if cast.null_count() != values.null_count():
        raise ParameterError(f"{name}: values must fit in int64")
    return cast.fill_null(-1 if whole else np.nan).to_numpy()


def splits_in(table: Table, n: int, ids: Ids) -> dict[str, Vertices]:
    """Return the vertices of train, val and test."""
    vertices, columns = matched(table, n, ids, _SPLIT)
    return splits_in_column(table, columns.to_series(), np.arange(n) if vertices is None else vertices)


def splits_in_column(
    table: Table, column: pl.Series, items: Vertices, one: str = "vertex"
) -> dict[str, Vertices]:
    """Return the items of train, val and test, of which each row is one."""
    words = column.cast(pl.String).str.strip_chars().str.to_lowercase()
    words = pl.select(pl.when(words == "").then(None).otherwise(words)).to_series()
    found = {word for word in words.unique().to_list() if word is not None}
    if strange := sorted(found - _SPLITS.keys()):
        raise ParameterError(
            f"{table.column(column.name)} holds {strange[0]!r:.80}. Expected train, val (valid, validation), test, or "
            "nothing"
        )
    splits = {name: np.empty(0, np.int64) for name in _NAMES if name in {_SPLITS[word] for word in found}}
    for name in splits:
        here = words.is_in([word for word, of in _SPLITS.items() if of == name]).fill_null(False)
        splits[name] = np.sort(items[here.to_numpy()])
    if not splits:
        raise ParameterError(f"{table.column(column.name)} names no {one}")
    return splits


def column_of_records(table: Table, *, split: bool = False) -> pl.Series:
    """Return the column of labels or of splits in a table with a row per record: by its name, or the only one."""
    known = _SPLIT if split else _LABEL
    names = table.frame.columns
    found = names if len(names) == 1 else [name for name in names if name.strip().lower() in known]
    if len(found) != 1:
        raise ParameterError(
            f"{table.where} has the columns {', '.join(map(one_line, names))}. Name one of them {known[0]!r}"
        )
    return table.frame[found[0]]


def members_in(table: Table, n: int, ids: Ids) -> Vertices:
    """Return the vertices that a column of ids lists, or a column of true and false marks."""
    if table.frame.width == 1:
        column = table.frame.to_series()
        if column.dtype == pl.Boolean:
            return np.flatnonzero(numbers_in(table, n, ids, (), missing=0))
        return vertices_of(table.where, column, n, ids)
    small = [column.strip().lower() for column in table.frame.columns]
    place = _column_of_ids(table, small, ids, ())
    if place is None:
        raise ParameterError(
            f"{table.where} has the columns {', '.join(map(one_line, table.frame.columns))}, and none is known to hold "
            "the vertices. Name it 'id'"
        )
    return vertices_of(table.column(table.frame.columns[place]), table.frame.to_series(place), n, ids)


def table_of_words(name: str, array: npt.NDArray[Any]) -> Table | None:
    """Return an array of text as a series. None for others."""
    if array.ndim != 1 or array.dtype.kind not in "OUT" or not array.size:
        return None
    values = array.tolist()
    if not all(isinstance(each, str) or each is None for each in values):
        return None
    before_polars_threads(f"{name}: an array")
    return Table(f"{name}: the array", pl.DataFrame({"": pl.Series(values, dtype=pl.String)}))


def is_matrix(table: Table, ids: Ids, known: Sequence[str] = _LABEL) -> bool:
    """Return whether a frame is one array of numbers, with a row per vertex."""
    small = [column.strip().lower() for column in table.frame.columns]
    return (
        len(small) > 1
        and not table.of_file
        and table.index is None
        and not set(small) & {*known, *_VERTEX}
        and all(dtype.is_numeric() or dtype == pl.Boolean for dtype in table.frame.dtypes)
        and _column_of_ids(table, small, ids, ()) is None
    )


def numbers_of_vertices(name: str, given: Any, n: int, ids: Ids, *, missing: int | None = None) -> Any:
    """Return one number per vertex, from a table by its ids. Arrays and files of arrays stay as they are, with a note.

    ``name`` is a parameter that takes such numbers. Vertices without a row have ``missing``, or are refused.
    """
    if isinstance(given, InOrder):
        return given.rows
    if (table := table_of(name, given)) is not None:
        return numbers_in(table, n, ids, _NUMBER[name.partition("[")[0]], missing=missing)
    in_order(name, ids)
    return given


def numbers_in(
    table: Table, n: int, ids: Ids, known: Sequence[str], *, missing: int | None = None
) -> npt.NDArray[Any]:
    """Return the number of each vertex in a table. Vertices without a row have ``missing``, or are refused."""
    vertices, columns = matched(table, n, ids, known)
    column = columns.to_series()
    at = table.column(column.name)
    values = column if column.dtype == pl.Boolean else numbers_of_text(column)
    if values is None or not (values.dtype.is_integer() or values.dtype == pl.Boolean):
        raise ParameterError(
            f"{at}: expected whole numbers, got {one_line(column.drop_nulls().head(1).to_list())}"
        )
    if values.null_count() and missing is None:
        raise ParameterError(f"{at}, row {values.is_null().arg_max()}: the number is missing")
    array: npt.NDArray[Any] = (values if missing is None else values.fill_null(missing)).to_numpy()
    if vertices is None:
        return array
    if missing is None:
        refuse_incomplete(table.where, vertices, n, ids)
    result = np.full(n, 0 if missing is None else missing, array.dtype if missing is None else np.int64)
    result[vertices] = array
    return result


# Tables in files.


def _read(name: str, file: Path) -> pl.DataFrame:
    before_polars_threads(f"{name}: {shown(file)}")
    with damaged(regular(file), "not a table"):
        if file.suffix == ".parquet":
            dtypes = pl.read_parquet_schema(file).values()
            refuse_large(str(file), row_groups(str(file)), dtypes, whole=True)
            return pl.read_parquet(file)
        refuse_filling(str(file))
        separator = "\t" if ".tsv" in file.name else _separator(file)
        frame = pl.read_csv(file, separator=separator, infer_schema=False, has_header=False)
        frame = frame.select(pl.when(pl.all() == "").then(None).otherwise(pl.all()).name.keep())
        header = frame.row(0) if len(frame) else ()
        if any(each is None or _number(each) is not None for each in header):
            return frame  # numbers name no columns
        if len(set(header)) < len(header):
            raise GraphFormatError(f"{shown(file)}: two columns have one name")
        return frame[1:].rename(dict(zip(frame.columns, header, strict=True)))


def _separator(file: Path) -> str:
    import gzip

    with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as opened:
        line = opened.readline(1 << 16).decode(errors="replace")
    try:
        return csv.Sniffer().sniff(line, ",;\t").delimiter
    except csv.Error:
        return ","


def numbers_of_text(column: pl.Series) -> pl.Series | None:
    """Return a column as whole numbers, else as floats, else None."""
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.cast(pl.Int64) if column.dtype == pl.Boolean else column
    if column.dtype != pl.String:
        try:
            column = column.cast(pl.String)
        except pl.exceptions.PolarsError:
            return None
    column = column.str.strip_chars()
    for dtype in (pl.Int64, pl.Float64):
        cast = column.cast(dtype, strict=False)
        if cast.null_count() == column.null_count():
            return cast
    return None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
