"""Where the rows of features of a batch come from: each is a :class:`RowSource`. And what is counted about them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ... import _core
from ...core.pairs import located
from ...core.parsing import created
from ...partitions.coding import Coding

RowIds = npt.NDArray[np.uint32]
Array = npt.NDArray[Any]


class RowSource(Protocol):
    """Rows of features, by their row in the topology.

    Attributes
    ----------
    dtype : numpy.dtype
        Type of the features.
    row_shape : tuple of int
        Shape of a row.
    """

    @property
    def dtype(self) -> np.dtype[Any]: ...  # noqa: D102
    @property
    def row_shape(self) -> tuple[int, ...]: ...  # noqa: D102

    def rows(self, ids: RowIds) -> Array:
        """Return the rows, in an array of their own, of shape ``(len(ids), *row_shape)``.

        Places of rows that the source does not have may hold anything.
        """


ABSENT = 2**32 - 1
"""The place of a row that is not there."""

_SHARE = 32
"""A table takes at most one part in so many of the memory that is free."""


class RowIndex:
    """The places of rows among some, by a table of 4 bytes per row of the topology or, if it is large, by a search.

    Parameters
    ----------
    ids : numpy.ndarray
        uint32: the rows that are there. They ascend.
    num_rows : int, optional
        Rows of the topology. Without it there is no table: it pays after several batches.
    """

    def __init__(self, ids: RowIds, num_rows: int = 0) -> None:
        self.ids, self._table = ids, None
        if len(ids) and num_rows and 4 * num_rows <= _core.memory_budget() // _SHARE:
            self._table = np.full(num_rows, ABSENT, np.uint32)
            self._table[ids] = np.arange(len(ids), dtype=np.uint32)

    def places(self, rows: RowIds) -> npt.NDArray[np.int64]:
        """Return the place of each row, or :data:`ABSENT`."""
        if self._table is not None:
            return self._table[rows].astype(np.int64)
        found, places = located(rows, self.ids)
        places[~found] = ABSENT
        return places

    def absent(self, rows: RowIds) -> RowIds:
        """Return the rows that are not there."""
        return rows[self.places(rows) == ABSENT]


class Cached:
    """Rows in memory.

    Parameters
    ----------
    index : RowIndex
        Which rows.
    values : numpy.ndarray
        These rows.
    """

    def __init__(self, index: RowIndex, values: Array) -> None:
        self._index, self._values = index, values
        self.dtype, self.row_shape = values.dtype, values.shape[1:]

    def rows(self, ids: RowIds) -> Array:
        """Return the rows."""
        x = np.empty((len(ids), *self.row_shape), self.dtype)
        self.put(x, ids)
        return x

    def put(self, x: Array, ids: RowIds) -> None:
        """Copy those of the rows that are here to their places in ``x``."""
        places = self._index.places(ids)
        found = np.flatnonzero(places != ABSENT)
        x[found] = self._values[places[found]]


class Files:
    """Rows in the files of the parts that are here.

    Parameters
    ----------
    features : _core.Features or None
        The files. None if no part is here.
    dtype : numpy.dtype
        Type of the features.
    row_shape : tuple of int
        Shape of a row.

    Attributes
    ----------
    features : _core.Features or None
        The files, for the threads of the core, which read rows of them while they sample.
    """

    def __init__(
        self, features: _core.Features | None, dtype: np.dtype[Any], row_shape: tuple[int, ...]
    ) -> None:
        self.features, self.dtype, self.row_shape = features, dtype, row_shape

    def rows(self, ids: RowIds) -> Array:
        """Return the rows."""
        if self.features is None:
            return np.empty((len(ids), *self.row_shape), self.dtype)
        return self.features.gather(ids)


UNWRITTEN = 64 << 20
"""Bytes that are not on the disk yet, at most about. They cannot be given back when memory is short."""


class RowFiles:
    """Files of rows while they are written."""

    def __init__(self) -> None:
        self._files: dict[Path, np.memmap[Any, Any]] = {}
        self._changed: set[Path] = set()
        self._unwritten = 0

    @property
    def paths(self) -> list[Path]:
        """The files so far."""
        return list(self._files)

    def put(self, path: Path, count: int, places: slice | npt.NDArray[np.int64], rows: Array) -> None:
        """Set some rows of the file, which has so many."""
        if path not in self._files:
            self._files[path] = created(path, rows.dtype, (count, *rows.shape[1:]))
        self._files[path][places] = rows
        self._changed.add(path)
        self._unwritten += rows.nbytes
        if self._unwritten > UNWRITTEN:
            self.flush()

    def flush(self) -> None:
        """Write what was set to the disk."""
        for path in self._changed:
            self._files[path].flush()
        self._changed, self._unwritten = set(), 0


_STEP = 1 << 16
"""Rows that are copied to the device at a time."""

_DEVICE_SHARE = 0.5
"""Share of the free memory of a GPU that rows take unless told otherwise. Networks and batches need the rest."""


def device_bytes(device: torch.device, given: int | None) -> int:
    """Return the bytes for rows on a device: what is given, else half of the free memory of a GPU, none on a CPU."""
    if given is not None:
        return given
    return int(torch.cuda.mem_get_info(device)[0] * _DEVICE_SHARE) if device.type == "cuda" else 0


class Resident:
    """Rows on a device.

    Parameters
    ----------
    index : RowIndex
        Which rows, at least one.
    read : callable
        Returns such rows.
    device : torch.device
        Where they stay.
    """

    def __init__(self, index: RowIndex, read: Callable[[RowIds], Array], device: torch.device) -> None:
        self.index, self._device = index, device
        none = torch.from_numpy(read(index.ids[:0]))
        self._values = none.new_empty((len(index.ids), *none.shape[1:]), device=device)
        for start in range(0, len(index.ids), _STEP):
            piece = slice(start, start + _STEP)
            self._values[piece] = torch.from_numpy(read(index.ids[piece]))

    def joined(self, ids: RowIds, others: Array) -> Tensor:
        """Return the features of rows on the device. ``others`` are those of the rows that are not resident."""
        places = self.index.places(ids)
        here = places != ABSENT
        kept = self._values.index_select(0, self._moved(places[here]))
        if here.all():
            return kept
        x = kept.new_empty((len(places), *kept.shape[1:]))
        x[self._moved(np.flatnonzero(here))] = kept
        x[self._moved(np.flatnonzero(~here))] = self._moved(others)
        return x

    def _moved(self, array: Array) -> Tensor:
        tensor = torch.from_numpy(array)
        if self._device.type == "cuda":
            return tensor.pin_memory().to(self._device, non_blocking=True)
        return tensor


def decoded(rows: Tensor, coding: Coding) -> Tensor:
    """Return coded rows as float32 on their device, bit for bit as :meth:`fastpart.partitions.coding.Coding.decode`."""
    codes, own = rows.split([coding.width, rows.shape[1] - coding.width], dim=1)
    if coding.columns is None:
        scales = own.clone(memory_format=torch.contiguous_format).view(torch.float32)
        low, step = scales[:, :1], scales[:, 1:]
    else:
        low, step = torch.from_numpy(coding.columns.copy()).to(rows.device)
    return codes.float().mul_(step).add_(low)


_NAMES = ("rows", "remote_rows", "remote_bytes", "cached_rows")


class Counts:
    """Rows of batches and of other ranks, their bytes, and the seconds of fetching rows. Several threads may count."""

    def __init__(self) -> None:
        self._of: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._seconds = 0.0

    def add(self, name: str, count: int) -> None:
        """Add to a count, by its name in :meth:`..loader.Loader.read_counts`."""
        with self._lock:
            self._of[name] += count

    def read(self) -> dict[str, int]:
        """Return the counts since the last call."""
        with self._lock:
            counts, self._of = self._of, Counter()
        return {name: counts[name] for name in _NAMES}

    def read_seconds(self) -> float:
        """Return the seconds since the last call."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    @contextmanager
    def timed(self) -> Iterator[None]:
        """Add the seconds of what is done within."""
        start = perf_counter()
        yield
        self._seconds += perf_counter() - start
