"""The bytes of features that an epoch reads from the disk, and how long it takes, by the ways to read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .. import _core
from ..partitions.coding import SCALE_BYTES
from ..partitions.part_files import PartFiles
from ..partitions.partition import VertexPartition
from ..partitions.plan import ReadCost
from ..partitions.seeds import rank_of_part
from ..partitions.types import of_type, type_names
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


@dataclass(frozen=True, eq=False)
class FeatureFiles:
    """The features of the vertices of one type. A plain graph has one.

    Attributes
    ----------
    parts : sequence of PartFiles
        Where the file of each part lies.
    topology : _core.Topology
        The parts.
    starts : numpy.ndarray
        int64: first row of each part, and the number of rows.
    """

    parts: Sequence[PartFiles]
    topology: _core.Topology
    starts: npt.NDArray[np.int64]

    @classmethod
    def of(cls, partition: VertexPartition) -> list[FeatureFiles | None]:
        """Return the features of each type. None: a type without features."""
        types = zip(type_names(partition), partition._rows_by_type.starts, strict=True)
        found = [cls(of_type(partition, name), partition._topology, starts) for name, starts in types]
        return [each if each.row_bytes else None for each in found]

    @property
    def paths(self) -> list[Path]:
        """The file of each part."""
        return [part._file("features.npy") for part in self.parts]

    @property
    def rows(self) -> int:
        """Rows of all parts."""
        return int(self.starts[-1])

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return self.parts[0].feature_bytes

    @property
    def coded_row_bytes(self) -> int:
        """Bytes of a row with 8 bits per number and its own scale."""
        row = self.parts[0].row_type("features")
        return 0 if row is None else int(np.prod(row[1], dtype=np.int64)) + SCALE_BYTES


@dataclass(frozen=True)
class EpochReads:
    """What the batches of all ranks read in epoch 0, the features of all types together.

    Attributes
    ----------
    steps : int
        Steps.
    rows, row_bytes : int
        Distinct rows of each batch that have features, and their bytes.
    read_bytes : int
        Bytes of direct reads.
    coded_bytes : int
        The same, if rows had 8 bits per number and a scale each.
    remote_rows, remote_bytes : int
        Rows of parts of other ranks, each once for the batches that are fetched together, and their bytes.
    """

    steps: int
    rows: int
    row_bytes: int
    read_bytes: int
    coded_bytes: int
    remote_rows: int = 0
    remote_bytes: int = 0

    @classmethod
    def of(
        cls, partition: VertexPartition, sampled: SampledEpochs, world_size: int, together: int = 1
    ) -> EpochReads:
        """Count them. Nothing but the topology is read."""
        types, owners = FeatureFiles.of(partition), rank_of_part(partition.k, world_size)
        counts = []
        for rank in range(world_size):
            others = np.flatnonzero(owners != rank)
            of_rank = [None if files is None else _Count(files, others, together) for files in types]
            for batch in sampled.rows_of_types(0, rank):
                for count, rows in zip(of_rank, batch, strict=True):
                    if count is not None:
                        count.add(rows)
            counts += [count for count in of_rank if count is not None]
        return cls(len(sampled.deal), *_sums(counts))

    @classmethod
    def counted(
        cls, partition: VertexPartition, steps: int, batches: Mapping[int, Iterable[Rows]]
    ) -> EpochReads:
        """Count what batches of these rows read, given those of types by the number of the type."""
        types, counts = FeatureFiles.of(partition), []
        for number, lists in batches.items():
            files = types[number]
            assert files is not None
            counts.append(_Count(files, np.empty(0, np.intp), 1))
            for rows in lists:
                counts[-1].add(rows)
        return cls(steps, *_sums(counts))

    def per_epoch(self, epochs: int) -> EpochReads:
        """Return the mean of so many epochs, if they were counted together."""
        counts = (self.rows, self.row_bytes, self.read_bytes, self.coded_bytes)
        return EpochReads(self.steps, *(round(each / epochs) for each in counts))


class _Count:
    """What the batches of a rank read of one type, counted batch by batch."""

    def __init__(self, files: FeatureFiles, others: npt.NDArray[np.intp], together: int) -> None:
        self._files, self._others, self._together = files, others, together
        self._features = _core.Features(files.paths, files.topology, starts=files.starts, direct=True)
        self._window: list[Rows] = []
        self._rows = self._read_bytes = self._coded_bytes = self._remote_rows = 0

    def add(self, rows: Rows) -> None:
        """Count a batch. Its rows are distinct and ascend."""
        files = self._files
        self._rows += len(rows)
        self._read_bytes += self._features.bytes_of(rows)
        self._coded_bytes += bytes_of_blocks(rows, files.starts, files.coded_row_bytes)
        if not len(self._others):
            return
        bounds = np.searchsorted(rows, files.starts)
        self._window.append(np.concatenate([rows[bounds[part] : bounds[part + 1]] for part in self._others]))
        if len(self._window) == self._together:
            self._end_window()

    def _end_window(self) -> None:
        """Count the rows of other ranks that the batches of a window fetch together."""
        if self._window:
            self._remote_rows += len(np.unique(np.concatenate(self._window)))
            self._window = []

    def sums(self) -> tuple[int, ...]:
        """Return the counts of :class:`EpochReads` in their order, those of the last window, too."""
        self._end_window()
        row_bytes = self._files.row_bytes
        rows, remote = self._rows, self._remote_rows
        return rows, rows * row_bytes, self._read_bytes, self._coded_bytes, remote, remote * row_bytes


def _sums(counts: Sequence[_Count]) -> tuple[int, ...]:
    """Return the counts of all types and ranks, added up."""
    return tuple(map(sum, zip((0,) * 6, *(count.sums() for count in counts), strict=True)))


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
    reads: EpochReads, disk: Disk | None, stored: FeatureSizes, memory: int, epochs: int | None
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
    epochs : int or None
        Epochs that a plan packs. None: there is no plan.
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
    if epochs is not None:
        packed = reads.row_bytes
        found.append(timed("plan", packed, stored.bytes + epochs * packed, disk))
    return found


@dataclass(frozen=True)
class FeatureSizes:
    """The features of all types in their files.

    Attributes
    ----------
    rows, bytes, coded_bytes : int
        Rows of all parts, their bytes, and what they would be with 8 bits per number.
    """

    rows: int
    bytes: int
    coded_bytes: int

    @classmethod
    def of(cls, partition: VertexPartition) -> FeatureSizes:
        """Return the sizes of the features of a directory."""
        sizes = [
            (files.rows, files.rows * files.row_bytes, files.rows * files.coded_row_bytes)
            for files in FeatureFiles.of(partition)
            if files is not None
        ]
        return cls(*map(sum, zip((0, 0, 0), *sizes, strict=True)))
