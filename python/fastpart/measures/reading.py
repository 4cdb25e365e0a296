"""The bytes of features that an epoch reads from the disk, and how long it takes, by the ways to read them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .. import _core
from ..partitions.coding import SCALE_BYTES
from ..partitions.partition import VertexPartition
from ..partitions.plan import ReadCost
from ..partitions.seeds import rank_of_part
from .accesses import Rows, SampledEpochs

BLOCK = 4096
"""Bytes that direct reads begin and end at multiples of."""

SECONDS = 1.0
"""How long the disk is measured."""


@dataclass(frozen=True)
class Disk:
    """What the disk of the features does in a second.

    Attributes
    ----------
    reads : float
        Reads of 4 KiB at random places, 128 at a time.
    bytes : float
        Bytes of consecutive reads.
    """

    reads: float
    bytes: float

    @classmethod
    def of(cls, files: Sequence[Path]) -> Disk | None:
        """Measure it for a second. None: files are only read through the page cache."""
        rates = _core.disk_rates(files, SECONDS)
        return None if rates is None else cls(*rates)

    def consecutive(self, count: float) -> float:
        """Return the seconds of so many bytes behind each other."""
        return count / self.bytes

    def scattered(self, count: float) -> float:
        """Return the seconds of so many bytes in blocks at many places."""
        return max(count / BLOCK / self.reads, count / self.bytes)


@dataclass(frozen=True)
class EpochReads:
    """What the batches of all ranks read in epoch 0.

    Attributes
    ----------
    steps : int
        Steps.
    rows : int
        Distinct rows of each batch.
    read_bytes : int
        Bytes of direct reads.
    coded_bytes : int
        The same, if rows had 8 bits per number and a scale each.
    remote_rows : int
        Rows of parts of other ranks, each once for the batches that are fetched together.
    """

    steps: int
    rows: int
    read_bytes: int
    coded_bytes: int
    remote_rows: int = 0

    @classmethod
    def of(
        cls, partition: VertexPartition, sampled: SampledEpochs, world_size: int, together: int = 1
    ) -> EpochReads:
        """Count them. Nothing but the topology is read."""
        windows: list[int] = []
        batches = chain.from_iterable(
            _counting(sampled.rows(0, rank), _Others.of(partition, world_size, rank), together, windows)
            for rank in range(world_size)
        )
        reads = cls.counted(partition, len(sampled.deal), batches)
        return replace(reads, remote_rows=sum(windows))

    @classmethod
    def counted(cls, partition: VertexPartition, steps: int, batches: Iterable[Rows]) -> EpochReads:
        """Count what batches of these rows read."""
        files = [part._file("features.npy") for part in partition.parts]
        features = _core.Features(files, partition._topology, direct=True)
        starts, width = partition._topology.starts, coded_row_bytes(partition)
        rows = read_bytes = coded_bytes = 0
        for needed in batches:
            rows += len(needed)
            read_bytes += features.bytes_of(needed)
            coded_bytes += bytes_of_blocks(needed, starts, width)
        return cls(steps, rows, read_bytes, coded_bytes)

    def per_epoch(self, epochs: int) -> EpochReads:
        """Return the mean of so many epochs, if they were counted together."""
        rows, read, coded = (round(each / epochs) for each in (self.rows, self.read_bytes, self.coded_bytes))
        return EpochReads(self.steps, rows, read, coded)


@dataclass(frozen=True)
class _Others:
    """The rows of other ranks: where each part begins, and which parts are theirs."""

    starts: npt.NDArray[np.int64]
    parts: npt.NDArray[np.intp]

    @classmethod
    def of(cls, partition: VertexPartition, world_size: int, rank: int) -> _Others:
        """Return those of the ranks but for one."""
        owners = rank_of_part(partition.k, world_size)
        return cls(partition._topology.starts, np.flatnonzero(owners != rank))

    def among(self, rows: Rows) -> Rows:
        """Return those among rows that ascend."""
        bounds = np.searchsorted(rows, self.starts)
        return np.concatenate([rows[:0], *(rows[bounds[part] : bounds[part + 1]] for part in self.parts)])


def _counting(batches: Iterable[Rows], others: _Others, together: int, windows: list[int]) -> Iterator[Rows]:
    """Yield the batches of a rank, and append how many rows of others each window of them fetches."""
    wanted: list[Rows] = []
    for rows in batches:
        wanted.append(others.among(rows))
        if len(wanted) == together:
            windows.append(len(np.unique(np.concatenate(wanted))))
            wanted = []
        yield rows
    if wanted:
        windows.append(len(np.unique(np.concatenate(wanted))))


def coded_row_bytes(partition: VertexPartition) -> int:
    """Return the bytes of a row with 8 bits per number and its own scale."""
    row = partition.parts[0].row_type("features")
    return 0 if row is None else int(np.prod(row[1], dtype=np.int64)) + SCALE_BYTES


def bytes_of_blocks(rows: Rows, starts: npt.NDArray[np.int64], row_bytes: int) -> int:
    """Return the bytes of the distinct blocks of rows, which ascend, if files of parts had rows of such a size."""
    bounds, total = np.searchsorted(rows, starts), 0
    for part in np.flatnonzero(np.diff(bounds)):
        local = rows[bounds[part] : bounds[part + 1]].astype(np.int64) - starts[part]
        first, last = local * row_bytes // BLOCK, ((local + 1) * row_bytes - 1) // BLOCK
        shared = np.count_nonzero(first[1:] == last[:-1])
        total += int((last - first + 1).sum() - shared)
    return total * BLOCK


def timed(name: str, count: int, once: int, disk: Disk | None, *, scattered: bool = False) -> ReadCost:
    """Return a way that reads so many bytes of a disk."""
    if disk is None:
        return ReadCost(name, count, None, once, None)
    seconds = disk.scattered(count) if scattered else disk.consecutive(count)
    return ReadCost(name, count, seconds, once, disk.consecutive(once))


def ways(
    reads: EpochReads, disk: Disk | None, stored: FeatureSizes, memory: int, epochs: int
) -> list[ReadCost]:
    """Return what each way takes.

    Parameters
    ----------
    reads : EpochReads
        What batches read.
    disk : Disk or None
        How fast the disk is.
    stored : FeatureSizes
        The features in their files.
    memory : int
        Bytes that the page cache has for them.
    epochs : int
        Epochs that a plan packs.
    """
    fits = stored.bytes <= memory
    found = [timed("maps", 0, stored.bytes, disk) if fits else ReadCost("maps", None, None)]
    if disk is not None:
        found.append(timed("direct", reads.read_bytes, 0, disk, scattered=True))
    if stored.coded_bytes < stored.bytes:
        if stored.coded_bytes <= memory:
            found.append(timed("8 bits, maps", 0, stored.coded_bytes, disk))
        elif disk is not None:
            found.append(timed("8 bits, direct", reads.coded_bytes, 0, disk, scattered=True))
    packed = reads.rows * stored.row_bytes
    found.append(timed("plan", packed, stored.bytes + epochs * packed, disk))
    return found


@dataclass(frozen=True)
class FeatureSizes:
    """The features in their files.

    Attributes
    ----------
    rows, row_bytes, coded_row_bytes : int
        Rows of all parts, bytes of each, and what they would be with 8 bits per number.
    """

    rows: int
    row_bytes: int
    coded_row_bytes: int

    @classmethod
    def of(cls, partition: VertexPartition) -> FeatureSizes:
        """Return the sizes of the features of a directory."""
        return cls(len(partition), partition.parts[0].feature_bytes, coded_row_bytes(partition))

    @property
    def bytes(self) -> int:
        """Bytes of all rows."""
        return self.rows * self.row_bytes

    @property
    def coded_bytes(self) -> int:
        """What they would be with 8 bits per number."""
        return self.rows * self.coded_row_bytes
