"""Files of rows, while they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from .source import Array

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
