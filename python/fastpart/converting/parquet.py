"""Edges in Parquet files, read and written in row groups."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .. import parameters
from ..errors import GraphFormatError
from ..forks import before_polars_threads
from ..frames import pl
from ..notes import log
from ..options import RunOptions
from ..parameters import IdType, shown
from ..parsing import damaged

ROWS = 1 << 20
"""Rows in memory at a time, and in a row group."""

_LARGEST = 2**32 - 2
_COLUMNS = ("source", "target")


def read(file: Path, copy: Path, relabel: bool, options: RunOptions) -> IdType:
    """Write the two integer columns of a Parquet file as raw pairs, and return their type."""
    before_polars_threads(f"convert: {shown(file)}")
    wide: IdType = "u64" if relabel else "u32"
    what = "not a Parquet file of edges"
    with parameters.regular(file).open("rb") as opened, copy.open("xb") as written:
        with damaged(file, what):
            frame = pl.scan_parquet(opened)
            frame = frame.select(_columns(file, frame.collect_schema()))
            rows = frame.select(pl.len()).collect().item()
        for start in range(0, rows, ROWS):
            with damaged(file, what):
                rows_here = frame.slice(start, ROWS).collect()
            records = np.empty((len(rows_here), 2), "<u8" if relabel else "<u4")
            for slot, column in enumerate(rows_here):
                _check(file, start, column, relabel)
                records[:, slot] = column.to_numpy()
            records.tofile(written)
            if options.progress is not None:
                options.progress("parquet", start + len(rows_here), rows)
    return wide


def _columns(file: Path, schema: pl.Schema) -> list[str]:
    whole = [name for name, dtype in schema.items() if dtype.is_integer() and dtype.to_python() is int]
    if len(whole) != 2:
        columns = ", ".join(f"{name!r} ({dtype})" for name, dtype in schema.items())
        raise GraphFormatError(
            f"{shown(file)}: expected two integer columns, source and target, got {columns or 'none'}. Select two"
        )
    if ignored := [name for name in schema if name not in whole]:
        log.info("%s: ignored the columns %s", shown(file), ", ".join(ignored))
    return whole


def _check(file: Path, start: int, column: pl.Series, relabel: bool) -> None:
    """Refuse an invalid id, and name its row."""
    at = f"{shown(file)}: column {column.name!r}, row"
    if column.null_count():
        row = column.is_null().arg_max() or 0
        raise GraphFormatError(f"{at} {start + row}: the id is null")
    ids = column.to_numpy()
    if len(ids) and ids.min() < 0:
        row = int(np.argmax(ids < 0))
        raise GraphFormatError(f"{at} {start + row}: {ids[row]} is negative. Ids are whole numbers from 0")
    if len(ids) and not relabel and int(ids.max()) > _LARGEST:
        row = int(np.argmax(ids > _LARGEST))
        raise GraphFormatError(
            f"{at} {start + row}: the id {ids[row]} exceeds the largest, {_LARGEST}. Relabel with `fastpart convert "
            "--relabel`"
        )


def write(raw: Path, m: int, target: Path, options: RunOptions) -> None:
    """Write ``m`` raw u32 pairs as the columns ``source`` and ``target``."""
    before_polars_threads(f"convert: {shown(target)}")
    from polars.io.plugins import register_io_source

    schema = dict.fromkeys(_COLUMNS, pl.UInt32)

    def frames(*_: object) -> Iterator[pl.DataFrame]:
        for start in range(0, m, ROWS):
            pairs = np.fromfile(raw, "<u4", 2 * min(ROWS, m - start), offset=8 * start).reshape(-1, 2)
            yield pl.DataFrame(
                {name: pairs[:, slot].copy() for slot, name in enumerate(_COLUMNS)}, schema=schema
            )
            if options.progress is not None:
                options.progress("write", min(start + ROWS, m), m)

    try:
        register_io_source(frames, schema=schema).sink_parquet(target, row_group_size=ROWS)
    except pl.exceptions.PolarsError as error:  # its text holds the error number of the system
        if number := re.search(r"\(os error (\d+)\)", str(error)):
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(target)) from None
        raise
    with target.open("rb") as written:
        os.fsync(written.fileno())
