"""What reading the features costs, by the ways to read them, with the rates of the disk that they lie on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ... import _core
from ...core.frames import pl
from .packing import Rows

_SECONDS = 1.0
"""How long the rates of a disk are measured."""

_BLOCK = 4096
"""Bytes of the shortest read past the page cache."""


@dataclass(frozen=True)
class WorkerRows:
    """What a worker reads in all epochs: a row of :attr:`fastpart.loading.Plan.workers`."""

    worker: int
    batches: int
    rows: int
    distinct_rows: int
    kept_rows: int
    read_rows: int
    direct_mb: float
    direct_read_mb: float


@dataclass(frozen=True)
class Way:
    """A row of :attr:`fastpart.loading.Plan.ways`."""

    way: str
    rows: float
    read_mb: float
    seconds: float | None
    once_mb: float
    once_seconds: float | None
    memory_mb: float


def direct_mb(features: _core.Features, batches: Iterable[Rows]) -> float:
    """Return the megabytes (10**6 bytes) that batches of these rows read past the page cache."""
    return sum(map(features.bytes_of, batches)) / 1e6


def ways(files: Sequence[Path], workers: pl.DataFrame, row_bytes: int, epochs: int) -> pl.DataFrame:
    """Return a row for each way to read the rows of some epochs.

    Parameters
    ----------
    files : sequence of path
        The features of all parts.
    workers : polars.DataFrame
        A :class:`WorkerRows` for each worker.
    row_bytes : int
        Bytes of a stored row.
    epochs : int
        How many epochs.
    """
    total = workers.sum().to_dicts()[0]
    stored = sum(file.stat().st_size for file in files) / 1e6
    kept, left = total["kept_rows"] * row_bytes / 1e6, total["read_rows"] * row_bytes / 1e6
    rates = _core.disk_rates(list(files), _SECONDS)
    random, sequential = (None, None) if rates is None else (rates[0] * _BLOCK / 1e6, rates[1] / 1e6)

    def way(name: str, rows: int, read: float, rate: float | None, once: float, memory: float) -> Way:
        each = read / epochs
        return Way(name, rows / epochs, each, _seconds(each, rate), once, _seconds(once, sequential), memory)

    told = [
        way("all in memory", 0, 0.0, sequential, stored, stored),
        way("direct reads", total["rows"], total["direct_mb"], random, 0.0, 0.0),
    ]
    if kept:
        left_mb = total["direct_read_mb"]
        told.append(way("direct reads, cache", total["read_rows"], left_mb, random, kept, kept))
    told.append(way("packed", total["read_rows"], left, sequential, stored + left + kept, kept))
    return pl.DataFrame([asdict(each) for each in told])


def _seconds(count: float, rate: float | None) -> float | None:
    """Return the time of so many bytes. None: the rate is not known."""
    return 0.0 if not count else None if not rate else count / rate
