"""Edges in Parquet files, read and written in row groups, and in the tables of a URL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..core.frames import before_polars_threads, pl
from ..core.notes import log
from ..core.options import RunOptions
from ..core.parameters import IdType, shown
from ..core.parsing import damaged
from ..core.row_groups import refuse_large, row_groups
from ..errors import FastpartError, GraphFormatError, ParameterError, code
from .files import Files
from .tables import ROWS, Pair, ends_of, kinds_of, narrowed, write_table
from .weights import Weights

_LARGEST = 2**32 - 2
_COLUMNS = ("source", "target")


def read(
    files: Files,
    copy: Path,
    relabel: bool,
    options: RunOptions,
    columns: Pair | None = None,
    weights: str | None = None,
    into: Path | None = None,
) -> IdType:
    """Write two integer columns of Parquet files as raw pairs, and return their type.

    The column ``weights`` goes to the file ``into``, as f64.
    """
    wide: IdType = "u64" if relabel else "u32"
    what = "not a Parquet file of edges"
    for file in files.files:
        name = files.name_of(file)
        before_polars_threads(f"convert: {name}")
        with parameters.regular(file).open("rb") as opened, copy.open("ab") as written:
            with damaged(file, what):
                frame = pl.scan_parquet(opened)
                found = _columns(name, frame.collect_schema(), columns, weights)
                frame = frame.select(found if weights is None else [*found, weights])
                rows = frame.select(pl.len()).collect().item()
                groups, dtypes = row_groups(str(file)), frame.collect_schema().dtypes()
                refuse_large(str(file), groups, dtypes, options.memory_limit)
            columns = found  # those of the first file, in all
            for start in range(0, rows, ROWS):
                with damaged(file, what):
                    rows_here = frame.slice(start, ROWS).collect()
                records = np.empty((len(rows_here), 2), "<u8" if relabel else "<u4")
                if weights is not None and into is not None:
                    with into.open("ab") as weighed:
                        _numbers(name, start, rows_here.drop_in_place(weights)).tofile(weighed)
                for slot, column in enumerate(rows_here):
                    _check(name, start, column, relabel)
                    records[:, slot] = narrowed(column).to_numpy()
                records.tofile(written)
                if options.progress is not None:
                    options.progress("parquet", start + len(rows_here), rows)
    return wide


def ids_of(files: Files, columns: Pair | None, weights: str | None = None) -> tuple[tuple[str, str], bool]:
    """Return the columns of the ids, and whether at least one of them holds strings."""
    file, name = files.files[0], files.name_of(files.files[0])
    before_polars_threads(f"graph: {name}")
    with parameters.regular(file).open("rb") as opened, damaged(file, "not a Parquet file of edges"):
        schema = pl.scan_parquet(opened).collect_schema()
    return _ids_in(name, schema, columns, weights)


def _ids_in(
    name: str, schema: Any, columns: Pair | None, weights: str | None
) -> tuple[tuple[str, str], bool]:
    kinds = kinds_of(schema)
    u, v = (kinds[end] for end in ends_of(name, kinds, columns, weights, GraphFormatError))
    return (u[0], v[0]), "string" in (u[1], v[1])


def _columns(name: str, schema: pl.Schema, columns: Pair | None, weights: str | None) -> tuple[str, str]:
    if weights is not None and weights not in schema:
        raise ParameterError(f"weights: {name} has no column {weights!r}, only {', '.join(schema)}")
    kinds = kinds_of(schema)
    ends = ends_of(name, kinds, columns, weights, GraphFormatError)
    for column, kind, dtype in (kinds[end] for end in ends):
        if kind == "string":
            raise GraphFormatError(
                f"{name}: column {column!r} is {dtype}. {code('fp.open_graph', '`fastpart partition`')} numbers "
                "vertices "
                "with such ids, convert does not"
            )
        if kind == "other":
            raise GraphFormatError(f"{name}: column {column!r} is {dtype}. Ids are whole numbers or strings")
    found = kinds[ends[0]][0], kinds[ends[1]][0]
    if ignored := [each for each in schema if each not in [*found, weights]]:
        log.info("%s: ignored the columns %s", name, ", ".join(ignored))
    return found


def _numbers(name: str, start: int, column: pl.Series) -> npt.NDArray[np.float64]:
    """Return weights, and refuse what is none."""
    if column.null_count() or not column.dtype.is_numeric():
        raise GraphFormatError(
            f"{name}: column {column.name!r} from row {start}: expected weights, got {column.dtype}"
            f"{' with nulls' if column.null_count() else ''}"
        )
    numbers: npt.NDArray[np.float64] = narrowed(column).to_numpy().astype("<f8")
    return numbers


def _check(name: str, start: int, column: pl.Series, relabel: bool) -> None:
    """Refuse an invalid id, and name its row."""
    at = f"{name}: column {column.name!r}, row"
    if column.null_count():
        row = column.is_null().arg_max() or 0
        raise GraphFormatError(f"{at} {start + row}: the id is null")
    ids = narrowed(column).to_numpy()
    if len(ids) and ids.min() < 0:
        row = int(np.argmax(ids < 0))
        raise GraphFormatError(f"{at} {start + row}: {ids[row]} is negative. Ids are whole numbers from 0")
    if len(ids) and not relabel and int(ids.max()) > _LARGEST:
        row = int(np.argmax(ids > _LARGEST))
        raise GraphFormatError(
            f"{at} {start + row}: the id {ids[row]} exceeds the largest, {_LARGEST}. Relabel with `fastpart convert "
            "--relabel`"
        )


def write(raw: Path, m: int, target: Path, options: RunOptions, weights: Weights | None = None) -> None:
    """Write ``m`` raw u32 pairs as the columns ``source`` and ``target``, and weights as the column ``weight``."""
    schema: dict[str, Any] = dict.fromkeys(_COLUMNS, pl.UInt32)
    if weights is not None:
        schema["weight"] = pl.UInt32 if weights.scale == 1 else pl.Float64

    def frames() -> Iterator[pl.DataFrame]:
        for start in range(0, m, ROWS):
            pairs = np.fromfile(raw, "<u4", 2 * min(ROWS, m - start), offset=8 * start).reshape(-1, 2)
            columns: dict[str, Any] = {name: pairs[:, slot].copy() for slot, name in enumerate(_COLUMNS)}
            if weights is not None:
                block = weights.array[start : start + len(pairs)]
                columns["weight"] = block if weights.scale == 1 else block / weights.scale
            yield pl.DataFrame(columns, schema=schema)
            if options.progress is not None:
                options.progress("write", min(start + ROWS, m), m)

    write_table(target, schema, frames())


@dataclass(frozen=True)
class Remote:
    """The tables that a URL names."""

    url: str
    reader: Any

    @classmethod
    def of(cls, url: str) -> Remote:
        """Find the tables and read their footers."""
        from .ingest.tables import open_table

        try:
            return cls(url, open_table("graph", url))
        except (OSError, FastpartError) as error:  # they begin with an entry of a schema
            if isinstance(error, OSError) and error.errno is not None:
                text = str(error.strerror).replace("graph.files: ", "", 1)
                raise type(error)(error.errno, text, *([error.filename] if error.filename else [])) from None
            raise type(error)(str(error).replace("graph.files: ", "", 1)) from None

    @property
    def key(self) -> list[list[Any]]:
        """Path, size and version of each file."""
        return [[file.path, file.bytes, file.mark] for file in self.reader.files]

    def __str__(self) -> str:
        return self.url

    def ids(self, columns: Pair | None, weights: str | None = None) -> tuple[tuple[str, str], bool]:
        """Return the columns of the ids, and whether at least one of them holds strings."""
        if not self.reader.files:
            raise GraphFormatError(f"{self.url}: no table")
        return _ids_in(self.url, self.reader.files[0].dtypes, columns, weights)

    def copied(self, into: Path, ends: tuple[str, str], weights: str | None) -> Files:
        """Write the columns of the ids, and that of the weights, to local files."""
        wanted = [*ends, *([] if weights is None else [weights])]
        copies: dict[Path, str] = {}
        for number, file in enumerate(self.reader.files):
            if lacking := [name for name in wanted if name not in file.dtypes]:
                raise GraphFormatError(
                    f"{shown(file.path)}: it has no column {lacking[0]!r}, only {', '.join(file.dtypes)}"
                )
            for batch in self.reader.batches(number, wanted):
                copy = into / f"{len(copies):06}.parquet"
                batch.write_parquet(copy)
                copies[copy] = file.path
        return Files(tuple(copies), None, copies)
