"""Tables from frames that are made one by one, as Parquet, CSV or Arrow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from ..core.forks import before_polars_threads
from ..core.frames import pl
from ..core.parameters import shown

ROWS = 1 << 20
"""Rows of a row group."""


def write_table(
    target: Path,
    schema: dict[str, Any],
    frames: Iterator[pl.DataFrame],
    compression: Literal["zstd", "lz4"] = "zstd",
) -> None:
    """Write frames as one file, Parquet, ``.csv`` or ``.arrow``, which is then on the disk.

    Only a few are in memory at a time. An error in ``frames`` is raised as it is. Those of the system name the file.
    """
    before_polars_threads(shown(target))
    from polars.io.plugins import register_io_source

    failed: list[BaseException] = []

    def source(*_: object) -> Iterator[pl.DataFrame]:
        try:
            yield from frames
        except GeneratorExit:
            raise
        except BaseException as error:  # Polars would wrap it, and lose its type
            failed.append(error)
            raise

    try:
        frame = register_io_source(source, schema=schema)
        if target.suffix == ".csv":
            frame.sink_csv(target)
        elif target.suffix == ".arrow":
            frame.sink_ipc(target, compression="uncompressed")  # whose rows can be mapped
        else:
            frame.sink_parquet(target, compression=compression, row_group_size=ROWS)
    except BaseException as error:
        if failed:
            raise failed[0] from None
        # The text of an error of Polars holds the error number of the system.
        if number := re.search(r"\(os error (\d+)\)", str(error)):
            raise OSError(int(number[1]), os.strerror(int(number[1])), str(target)) from None
        raise
    with target.open("rb") as written:
        os.fsync(written.fileno())
