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

Rows = npt.NDArray[np.uint32]

CACHED_IDS, CACHED, CACHED_CHECKSUM = "cached_ids.npy", "cached.npy", "cached.checksums.npy"
"""Which rows stay in memory, these rows, and their checksum."""


_HEAD = 128
"""Bytes before the rows of a pack."""


def worker_name(worker: int) -> str:
    """Return the folder of a worker in that of a plan."""
    return f"worker-{worker:05d}"


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


def most_used(accesses: Accesses, n: int, most: int) -> tuple[Rows, int]:
    """Return at most so many rows, those in the most batches, and how many distinct rows there are.

    Rows of one batch are none of them: to keep them would save nothing.
    """
    counts = np.zeros(n, np.uint32)
    for batch in range(len(accesses)):
        counts[accesses.of(batch)] += 1  # each row once
    distinct = int(np.count_nonzero(counts))
    several = np.flatnonzero(counts > 1) if most else np.empty(0, np.int64)
    if len(several) > most:
        # Equal rows are told apart by their number, so that the choice is the same everywhere.
        several = np.sort(several[np.argsort(-counts[several].astype(np.int64), kind="stable")[:most]])
    return several.astype(np.uint32), distinct


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
    """What is packed for a worker.

    Attributes
    ----------
    worker : int
        Its number.
    cached : numpy.ndarray
        uint32: the rows that stay in its memory. They ascend.
    epochs : sequence of EpochLists
        Its lists without them.
    """

    worker: int
    cached: Rows
    epochs: Sequence[EpochLists]

    @property
    def num_rows(self) -> int:
        """Rows of all files."""
        return len(self.cached) + sum(len(each.rows) for each in self.epochs)


def write(folder: Path, packs: Iterable[WorkerPack], features: _core.Features, run: RunOptions) -> None:
    """Write the files of some packs in one pass over the features."""
    targets = []
    for pack in packs:
        own = folder / worker_name(pack.worker)
        own.mkdir(exist_ok=True)
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
