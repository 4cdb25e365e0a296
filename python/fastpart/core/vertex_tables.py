"""Labels and splits of vertices in tables: text with separators, or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import GraphFormatError, ParameterError
from .forks import before_polars_threads
from .frames import pl
from .ids import Ids
from .notes import log
from .parameters import one_line, regular, shown
from .parsing import damaged

_TEXT = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
_VERTEX = ("vertex", "vertex_id", "node", "node_id", "id")
_LABEL = ("label", "labels", "y", "class", "target", "category")
_SPLIT = ("split", "set", "subset", "fold")
_SPLITS = {"train": "train", "val": "val", "valid": "val", "validation": "val", "test": "test"}


def is_table(file: Path) -> bool:
    """Return whether a file is a table by its suffix."""
    return file.suffix == ".parquet" or file.name.endswith(_TEXT)


def labels_in(file: Path, n: int, ids: Ids) -> npt.NDArray[Any]:
    """Return the label of each vertex: int64, where -1 is none, or float64, where NaN is none."""
    vertices, column = _columns("labels", file, n, ids, _LABEL)
    values = _numbers(column)
    if values is None:
        known = column.drop_nulls().unique().sort()
        log.info(
            "labels: the %d values of column %s are numbered in their order",
            len(known),
            one_line(column.name),
        )
        values = pl.Series(column.name, np.searchsorted(known.to_numpy(), column.fill_null("").to_numpy()))
        values = pl.select(pl.when(column.is_null()).then(None).otherwise(values)).to_series()
    whole = values.dtype.is_integer()
    labels: npt.NDArray[Any] = np.full(n, -1) if whole else np.full(n, np.nan)
    labels[vertices] = values.fill_null(-1 if whole else np.nan).to_numpy()
    return labels


def splits_in(file: Path, n: int, ids: Ids) -> dict[str, npt.NDArray[np.int64]]:
    """Return the vertices of train, val and test."""
    vertices, column = _columns("splits", file, n, ids, _SPLIT)
    words = column.cast(pl.String).str.strip_chars().str.to_lowercase()
    words = pl.select(pl.when(words == "").then(None).otherwise(words)).to_series()
    found = {word for word in words.unique().to_list() if word is not None}
    if strange := sorted(found - _SPLITS.keys()):
        raise ParameterError(
            f"splits: {shown(file)}: column {one_line(column.name)} holds {strange[0]!r:.80}. Expected train, val "
            "(valid, validation), test, or nothing"
        )
    splits = {name: np.empty(0, np.int64) for name in sorted({_SPLITS[word] for word in found})}
    for name in splits:
        here = words.is_in([word for word, of in _SPLITS.items() if of == name]).fill_null(False)
        splits[name] = np.sort(vertices[here.to_numpy()])
    if not splits:
        raise ParameterError(f"splits: {shown(file)}: column {one_line(column.name)} names no vertex")
    return splits


def _columns(
    name: str, file: Path, n: int, ids: Ids, known: Sequence[str]
) -> tuple[npt.NDArray[np.int64], pl.Series]:
    """Return the vertex of each row, and the column that is wanted."""
    frame = _read(name, file)
    small = [column.strip().lower() for column in frame.columns]
    wanted = [place for place, column in enumerate(small) if column in known]
    of_vertex = [small.index(column) for column in _VERTEX if column in small][:1]
    if len(small) == 1:
        wanted, of_vertex = [0], []
    elif len(small) == 2 and (len(wanted), len(of_vertex)) != (1, 1):
        of_vertex = of_vertex if not wanted else [1 - wanted[0]]
        of_vertex = of_vertex or [0]
        wanted = [1 - of_vertex[0]]
    if len(wanted) != 1 or (len(small) > 1 and not of_vertex):
        raise ParameterError(
            f"{name}: {shown(file)} has the columns {', '.join(map(one_line, frame.columns))}. Name the one of the "
            f"vertices 'vertex' and the other one {known[0]!r}"
        )
    column = frame.to_series(wanted[0])
    if not of_vertex:
        if len(frame) != n:
            raise ParameterError(
                f"{name}: {shown(file)} has {len(frame)} rows for {n} vertices, and no column that says which. Add one "
                "named 'vertex'"
            )
        return np.arange(n), column
    if len(small) > 2:
        log.info("%s: read from the columns %s and %s", name, frame.columns[of_vertex[0]], column.name)
    return _vertices(name, file, frame.to_series(of_vertex[0]), n, ids), column


def _vertices(name: str, file: Path, column: pl.Series, n: int, ids: Ids) -> npt.NDArray[np.int64]:
    at = f"{name}: {shown(file)}: column {one_line(column.name)}"
    if column.null_count():
        raise GraphFormatError(f"{at}, row {column.is_null().arg_max()}: the vertex is missing")
    if ids:
        numbers = _looked_up(at, column, ids)
    else:
        cast = _numbers(column)
        if cast is None or not cast.dtype.is_integer():
            raise GraphFormatError(f"{at}: expected vertices 0..{n - 1}, got {one_line(column[0], 40)!r}")
        numbers = cast.cast(pl.Int64).to_numpy()
    outside = np.flatnonzero((numbers < 0) | (numbers >= n))
    if outside.size:
        raise ParameterError(f"{at}, row {outside[0]}: {numbers[outside[0]]} is outside 0..{n - 1}")
    order = np.argsort(numbers, kind="stable")
    twice = np.flatnonzero(np.diff(numbers[order]) == 0)
    if twice.size:
        first, second = order[twice[0]], order[twice[0] + 1]
        raise ParameterError(f"{at}: rows {first} and {second} are of the same vertex, {column[int(first)]}")
    return numbers


def _looked_up(at: str, column: pl.Series, ids: Ids) -> npt.NDArray[np.int64]:
    """Return the vertices of the ids that they had in tables."""
    if len(ids) > 1:
        raise ParameterError(
            f"{at}: the graph has {len(ids)} types of vertices. Labels and splits come with ingest"
        )
    known = ids[0].scanned()
    with damaged(ids[0].file, "not a table of ids"):
        wanted = pl.DataFrame({"id": column.cast(ids[0].dtype, strict=False), "row": np.arange(len(column))})
        found = wanted.lazy().join(known, on="id", how="left").sort("row").collect()
    vertices = found["vertex"]
    if vertices.null_count():
        row = vertices.is_null().arg_max() or 0
        raise ParameterError(f"{at}, row {row}: no vertex has the id {one_line(column[row], 40)!r}")
    return vertices.cast(pl.Int64).to_numpy()


def _read(name: str, file: Path) -> pl.DataFrame:
    before_polars_threads(f"{name}: {shown(file)}")
    with damaged(regular(file), "not a table"):
        if file.suffix == ".parquet":
            return pl.read_parquet(file)
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


def _numbers(column: pl.Series) -> pl.Series | None:
    """Return a column as whole numbers, else as floats, else None."""
    if column.dtype.is_numeric() or column.dtype == pl.Boolean:
        return column.cast(pl.Int64) if column.dtype == pl.Boolean else column
    if column.dtype != pl.String:
        column = column.cast(pl.String)
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
