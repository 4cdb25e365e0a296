"""Packs of the epochs of workers: which rows stay in memory, and files with the others in the order of their use."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ...core.options import RunOptions
from ...core.parameters import shown
from ...core.parsing import mapped
from ...errors import GraphFormatError
from ...measures.accesses import Accesses
from ...measures.reading import BLOCK
from ...partitions.types import ONLY_TYPE

Rows = npt.NDArray[np.uint32]

CACHED_IDS, CACHED, CACHED_CHECKSUM = "cached_ids.npy", "cached.npy", "cached.checksums.npy"
"""Which rows stay in memory, these rows, and their checksum."""


_HEAD = 128
"""Bytes before the rows of a pack."""


def folder_of(worker: int, type: str = ONLY_TYPE) -> Path:
    """Return the folder of a worker in that of a plan and in it, over types, the folder of a type."""
    own = Path(f"worker-{worker:05d}")
    return own if type == ONLY_TYPE else own / "types" / type


@dataclass(frozen=True, eq=False)
class PlannedType:
    """The features of a type that are planned. A graph without types has one.

    Attributes
    ----------
    number, name : int, str
        The type.
    features : _core.Features
        As they are stored.
    n : int
        Number of its rows.
    row_bytes : int
        Bytes of a row.
    """

    number: int
    name: str
    features: _core.Features
    n: int
    row_bytes: int


def epoch_files(epoch: int) -> tuple[str, str, str]:
    """Return the files of an epoch: its rows, where those of each step begin, and their checksums."""
    return tuple(f"epoch-{epoch:05d}{suffix}.npy" for suffix in ("", ".offsets", ".checksums"))  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class EpochLists:
    """The rows that the batches of an epoch read.

    Attributes
    ----------
    epoch : int
        Which epoch.
    offsets : numpy.ndarray
        int64, of shape (steps + 1,): where the rows of each step begin.
    rows : numpy.ndarray
        uint32. Those of a step ascend.
    """

    epoch: int
    offsets: npt.NDArray[np.int64]
    rows: Rows

    def of(self, step: int) -> Rows:
        """Return the rows of a step."""
        return self.rows[self.offsets[step] : self.offsets[step + 1]]

    def read_bytes(self, row_bytes: int) -> int:
        """Return the bytes of the blocks that hold the packed rows of all steps, each block once for a step."""
        ends = _HEAD + self.offsets * row_bytes
        blocks = -(-ends[1:] // BLOCK) - ends[:-1] // BLOCK
        return int(blocks[np.diff(self.offsets) > 0].sum()) * BLOCK


def most_used(
    lists: Sequence[Accesses], types: Sequence[PlannedType], memory: int
) -> tuple[list[Rows], list[int]]:
    """Return the rows of each type that memory holds, those in the most batches, and how many distinct rows there are.

    Rows of one batch are none of them: to keep them would save nothing. A wide row takes as many times the memory of a
    narrow one as it saves of reads. So only the batches count.
    """
    counts = [_batches_of_rows(accesses, of.n) for accesses, of in zip(lists, types, strict=True)]
    sizes = [max(of.row_bytes, 1) for of in types]
    used = np.zeros(len(lists[0]) + 2, np.int64)  # bytes of the rows in so many batches
    for each, size in zip(counts, sizes, strict=True):
        used += size * np.bincount(each[each > 1], minlength=len(used))
    held = np.cumsum(used[::-1])[::-1]
    least = int(np.argmax(held <= memory))
    left, cached = memory - int(held[least]), []
    for each, size in zip(counts, sizes, strict=True):
        rows = each >= max(least, 2)
        if least > 2:
            # Equal rows are told apart by their type and number, so that the choice is the same everywhere.
            more = np.flatnonzero(each == least - 1)[: left // size]
            rows[more] = True
            left -= len(more) * size
        cached.append(np.flatnonzero(rows).astype(np.uint32))
    return cached, [int(np.count_nonzero(each)) for each in counts]


def _batches_of_rows(accesses: Accesses, n: int) -> npt.NDArray[np.uint32]:
    """Return in how many batches each of ``n`` rows is."""
    counts = np.zeros(n, np.uint32)
    for batch in range(len(accesses)):
        counts[accesses.of(batch)] += 1  # each row once
    return counts


def without(accesses: Accesses, cached: Rows, n: int) -> list[EpochLists]:
    """Return the lists of each epoch without rows that stay in memory."""
    epochs = [
        accesses.indptr[i * accesses.steps :][: accesses.steps + 1] for i in range(len(accesses.epochs))
    ]
    if not len(cached):
        return [
            EpochLists(epoch, ends - ends[0], accesses.rows[ends[0] : ends[-1]])
            for epoch, ends in zip(accesses.epochs, epochs, strict=True)
        ]
    absent = np.ones(n, np.bool_)
    absent[cached] = False
    lists = []
    for epoch, ends in zip(accesses.epochs, epochs, strict=True):
        rows = [accesses.rows[first:end] for first, end in itertools.pairwise(ends)]
        rows = [each[absent[each]] for each in rows]
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        lists.append(EpochLists(epoch, offsets, np.concatenate([np.empty(0, np.uint32), *rows])))
    return lists


@dataclass(frozen=True, eq=False)
class WorkerPack:
    """What is packed of a type for a worker.

    Attributes
    ----------
    folder : pathlib.Path
        Where it lies in the folder of the plan.
    cached : numpy.ndarray
        uint32: the rows that stay in its memory. They ascend.
    epochs : sequence of EpochLists
        Its lists without them.
    """

    folder: Path
    cached: Rows
    epochs: Sequence[EpochLists]

    @property
    def num_rows(self) -> int:
        """Rows of all files."""
        return len(self.cached) + sum(len(each.rows) for each in self.epochs)


def write(folder: Path, packs: Iterable[WorkerPack], features: _core.Features, run: RunOptions) -> None:
    """Write the files of some packs of a type in one pass over its features."""
    targets = []
    for pack in packs:
        own = folder / pack.folder
        own.mkdir(parents=True, exist_ok=True)
        if len(pack.cached):
            targets.append((own / CACHED, np.array([0, len(pack.cached)], np.int64), pack.cached))
            np.save(own / CACHED_IDS, pack.cached)
        for each in pack.epochs:
            rows, offsets, _ = epoch_files(each.epoch)
            targets.append((own / rows, each.offsets, each.rows))
            np.save(own / offsets, each.offsets)
    for (file, *_), checksums in zip(targets, features.pack(targets, run), strict=True):
        np.save(file.with_name(f"{file.stem}.checksums.npy"), checksums)


def read_cached_ids(folder: Path, n: int) -> Rows:
    """Return which of ``n`` rows a worker keeps in memory."""
    file = folder / CACHED_IDS
    if not file.exists():
        return np.empty(0, np.uint32)
    ids = _read(file, np.uint32)
    if np.any(ids[1:] <= ids[:-1]) or np.any(ids[-1:] >= n):
        raise _damaged(file)
    return ids


def read_cached_checksum(folder: Path) -> int:
    """Return the checksum of the rows that a worker keeps in memory."""
    return int(_read(folder / CACHED_CHECKSUM, np.uint64, 1)[0])


def read_steps(offsets: Path, checksums: Path) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Return where the rows of each step of an epoch begin, and their checksums."""
    return _read(offsets, np.int64), _read(checksums, np.uint64)


def _read(file: Path, dtype: npt.DTypeLike, count: int | None = None) -> npt.NDArray[Any]:
    """Return the numbers of a small file of a pack."""
    array = mapped(file)
    if array.dtype != dtype or array.ndim != 1 or len(array) != (count or len(array)):
        raise _damaged(file)
    return np.array(array)


def _damaged(file: Path) -> GraphFormatError:
    return GraphFormatError(f"{shown(file)}: not as it was packed. Make the plan again")
