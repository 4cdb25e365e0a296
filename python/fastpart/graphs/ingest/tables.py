"""The files of a table, and their rows in batches. Polars reads them, file by file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...core.frames import pl

BATCH = 1 << 18
"""Rows in memory at a time."""


@dataclass(frozen=True)
class TableFile:
    """One file of a table: what identifies it, and what it holds."""

    path: str
    """A local path or a URL, as messages show it."""
    bytes: int
    mark: str
    """The time of its last change, its ETag, or the version of a snapshot."""
    rows: int
    dtypes: dict[str, Any]
    """The Polars type of each column."""


class TableReader:
    """A table of a schema: its files in the order of their rows, which is that of their paths."""

    def __init__(self, files: Sequence[TableFile]) -> None:
        self.files = tuple(files)

    def batches(
        self, number: int, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[pl.DataFrame]:
        """Yield the given columns of rows start..stop of file ``number``, in their order, in frames of :data:`BATCH` rows.

        Errors name the file.
        """
        file = self.files[number]
        stop = file.rows if stop is None else stop
        frame = pl.scan_parquet(file.path).select(columns).slice(start, stop - start)
        yield from frame.collect_batches(chunk_size=BATCH, maintain_order=True)
