"""Rows of some vertices, in files that have no others."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from .source import Array, RowIds


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
