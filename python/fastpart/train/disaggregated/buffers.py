"""Groups of batches in shared memory, from where the compute workers of a machine take them."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from ...core.system import allocate
from ...errors import MemoryBudgetError, TrainingError, arg
from ...partitions.part_files import RowType
from ...runtime.session import SHARED_MEMORY
from .grouping import INDICES, INTO, ROWS, SENT, SLOTS
from .messages import Array, MessageError, Spec

_ALIGN = 64

Extent = tuple[int, str, tuple[int, ...]]
"""Offset, type and shape of an array in a file."""


@dataclass(frozen=True)
class File:
    """A file in shared memory."""

    name: str
    memory: mmap.mmap


@dataclass(frozen=True)
class Buffer:
    """A file with a group.

    Attributes
    ----------
    file : File
        The file in shared memory.
    extents : list
        Where the features, the rows and the arrays of each batch lie in the file.
    x : numpy.ndarray
        The features of all rows. Those that are not sent are missing at first.
    arrays : list of numpy.ndarray
        Arrays that a message is received into.
    """

    file: File
    extents: list[Extent]
    x: Array
    arrays: list[Array]


class BufferPool:
    """Hands out buffers. It takes files that were used before, because fresh memory takes as long as to fill it.

    Parameters
    ----------
    run : str
        Name of the run. Files are removed with it in any case.
    dtype, shape
        Type and shape of a row of features.
    edges : tuple, optional
        Type and shape of the features of an in-edge, if batches have them.
    """

    def __init__(
        self, run: str, dtype: np.dtype[Any], shape: tuple[int, ...], edges: RowType | None = None
    ) -> None:
        self._run, self._dtype, self._shape = run, dtype, shape
        number = (np.dtype(np.int32), ())
        self._of_batch = [number] * (INDICES + 1) + ([] if edges is None else [edges])
        self._numbers = count()
        self._free: list[File] = []
        self._lock = threading.Lock()

    def take(self, content: Mapping[str, Any], specs: Sequence[Spec]) -> Buffer:
        """Return a buffer for a message."""
        self._check(content, specs)
        whole = (self._dtype, (specs[ROWS][1][0], *self._shape))
        shared = [whole, specs[ROWS], *specs[INTO + 1 :]]
        extents, end = [], 0
        for dtype, shape in shared:
            extents.append((end, dtype.str, shape))
            end += -(-dtype.itemsize * int(np.prod(shape, dtype=object)) // _ALIGN) * _ALIGN
        file = self._file(end)
        x, rows, *graphs = [_view(file.memory, extent) for extent in extents]
        others = [np.empty(shape, dtype) for dtype, shape in specs[SLOTS : INTO + 1]]
        return Buffer(file, extents, x, [x[: specs[SENT][1][0]], rows, *others, *graphs])

    def _file(self, size: int) -> File:
        """Return a file that nobody uses. A new one takes the place of one that is too small."""
        with self._lock:
            self._free.sort(key=lambda file: len(file.memory))
            for place, file in enumerate(self._free):
                if len(file.memory) >= size:
                    return self._free.pop(place)
            if self._free:
                _unlink(self._free.pop(0))
            name = f"{self._run}-batch-{os.getpid()}-{next(self._numbers)}"
        return File(name, _created(SHARED_MEMORY / name, size + size // 8 + _ALIGN))

    def take_back(self, buffer: Buffer) -> None:
        """Use the file of a buffer again."""
        with self._lock:
            self._free.append(buffer.file)

    def close(self) -> None:
        """Remove the files that nobody uses."""
        with self._lock:
            for file in self._free:
                _unlink(file)
            self._free.clear()

    def _check(self, content: Mapping[str, Any], specs: Sequence[Spec]) -> None:
        graphs = content.get("graphs")
        if not isinstance(graphs, list) or len(specs) != INTO + 1 + len(self._of_batch) * len(graphs):
            raise MessageError("a group has another number of arrays than its batches need")
        numbers = [(np.dtype(np.int32), ())] * (INTO + 1 - SLOTS)
        expected = [(self._dtype, self._shape), (np.dtype(np.uint32), ()), *numbers]
        expected += self._of_batch * len(graphs)
        right = [(dtype, shape[1:]) for dtype, shape in specs] == expected and all(
            shape for _, shape in specs
        )
        if not right or specs[SENT][1][0] > specs[ROWS][1][0]:
            raise MessageError("a group has arrays of other types or shapes than this directory needs")


def _unlink(file: File) -> None:
    (SHARED_MEMORY / file.name).unlink(missing_ok=True)


def _created(file: Path, size: int) -> mmap.mmap:
    handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        allocate(handle, size)  # otherwise a write to a full /dev/shm would be a SIGBUS
        return mmap.mmap(handle, size)
    except OSError as error:
        file.unlink()
        raise MemoryBudgetError(
            f"/dev/shm has not {size:,} bytes left for a group of batches ({error.strerror}). Use a smaller "
            f"{arg('batch_size')} or {arg('ahead')}"
        ) from error
    finally:
        os.close(handle)


def _view(memory: mmap.mmap, extent: Extent) -> Array:
    offset, dtype, shape = extent
    size = int(np.prod(shape, dtype=object))
    return np.frombuffer(memory, dtype, size, offset).reshape(shape)


class GroupReader:
    """A group of batches in shared memory, as a compute worker reads it."""

    def __init__(self, name: str, extents: Sequence[Extent], graphs: Sequence[Any]) -> None:
        with (SHARED_MEMORY / name).open("rb") as file:
            memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        arrays = [_view(memory, extent) for extent in extents]
        self.x, self.rows, self._arrays, self._graphs = arrays[0], arrays[1], arrays[2:], graphs

    def batches(self, compute_worker: int) -> list[tuple[list[int], list[Array]]]:
        """Return the levels, and rows in the group, offsets, sources and any features of in-edges of each batch."""
        found, count = list[tuple[list[int], list[Array]]](), len(self._arrays) // max(len(self._graphs), 1)
        for number, (its_worker, levels, edges) in enumerate(self._graphs):
            if its_worker == compute_worker:
                first = number * count
                places, indptr, indices, *of_edges = self._arrays[first : first + count]
                _refuse_wrong(levels, edges, places, indptr, indices, len(self.rows))
                if any(len(rows) != len(indices) for rows in of_edges):
                    raise TrainingError("a batch has another number of features of in-edges than of these")
                found.append((levels, [places, indptr, indices, *of_edges]))
        return found


def _refuse_wrong(
    levels: Sequence[int], edges: Sequence[int], places: Array, indptr: Array, indices: Array, rows: int
) -> None:
    """Raise an error unless the arrays of a batch fit together. A model would read beyond them."""
    targets = sum(levels[:-1])
    right = len(places) == sum(levels) and len(indptr) == targets + 1 and len(indices) == sum(edges)
    if not right or indptr[0] != 0 or indptr[-1] != len(indices) or np.any(np.diff(indptr) < 0):
        raise TrainingError("a batch has other numbers of nodes and edges than it says")
    for numbers, end in ((places, rows), (indices, len(places))):
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= end):
            raise TrainingError("a batch names a node that it does not have")
