"""Rows of some vertices, in files that have no others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .source import Array, RowIds

UNWRITTEN = 64 << 20
"""Bytes that are not on the disk yet, at most about. They cannot be given back when memory is short."""


class SavedRows:
    """Rows of some vertices, one file for each part with any.

    Parameters
    ----------
    files : sequence of path
        The files. Their rows are those of the vertices of the part, in ascending order.
    ids : sequence of numpy.ndarray
        uint32: which rows of the topology each file has. They ascend, also from file to file.
    """

    def __init__(self, files: Sequence[Path], ids: Sequence[RowIds]) -> None:
        self._files = [np.load(file, mmap_mode="r") for file in files]
        self._ids = np.concatenate(ids)
        self._bounds = np.cumsum([0, *map(len, ids)])
        self.dtype, self.row_shape = self._files[0].dtype, self._files[0].shape[1:]

    def rows(self, ids: RowIds) -> Array:
        """Return the rows, all of which are there."""
        found = np.empty((len(ids), *self.row_shape), self.dtype)
        places: npt.NDArray[np.int64] = np.searchsorted(self._ids, ids)
        for file, first, end in zip(self._files, self._bounds, self._bounds[1:], strict=False):
            here = np.flatnonzero((first <= places) & (places < end))
            found[here] = file[places[here] - first]
        return found


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
            self._files[path] = np.lib.format.open_memmap(path, "w+", rows.dtype, (count, *rows.shape[1:]))
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
