"""Rows of all vertices in files of some columns each, so that memory holds one of them where it does not hold the rows.

The means of the neighbours of all vertices need each row as often as it has out-edges, in random order. Where memory
holds neither the rows nor the sums of all vertices, either the rows are read again for each group of vertices whose
sums it holds (*sweeps*), or once, to write files of columns. Then memory holds one of these at a time, and the lists of
neighbours are read again for each.
:class:`Costs` says which takes fewer bytes.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from .. import _core
from ..loading.rows.source import Array
from ..partitions.coding import Coding

_BLOCK = 4096
"""Bytes that are read for a row at least, if it is read alone."""

_SOURCE = 4
"""Bytes of an in-edge in the lists of neighbours."""

_NUMBER = 4
"""Bytes of a number of a mean."""


@dataclass(frozen=True)
class StoredRows:
    """Rows in files.

    Attributes
    ----------
    count : int
        Number of rows.
    width : int
        Numbers of a row.
    coding : Coding, optional
        How rows are decoded. Default: they are float32.
    """

    count: int
    width: int
    coding: Coding | None = None

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return _NUMBER * self.width if self.coding is None else self.coding.row_shape[0]

    @property
    def size(self) -> int:
        """Bytes of all rows."""
        return self.count * self.row_bytes

    def split(self, most: int) -> list[Columns]:
        """Return columns of which each file has at most so many bytes, or a single column."""
        own = self.row_bytes - self.width if self.coding is not None else 0
        number = 1 if self.coding is not None else _NUMBER
        fit = max(1, (most // max(self.count, 1) - own) // number)
        bounds = np.linspace(0, self.width, -(-self.width // fit) + 1).astype(int).tolist()
        return [Columns(first, end, self.coding) for first, end in pairwise(bounds)]


@dataclass(frozen=True)
class Columns:
    """Columns ``first`` to ``end`` of rows."""

    first: int
    end: int
    rows_coding: Coding | None = None

    @property
    def coding(self) -> Coding | None:
        """How these columns are decoded."""
        if self.rows_coding is None:
            return None
        columns = self.rows_coding.columns
        return Coding(self.end - self.first, None if columns is None else columns[:, self.first : self.end])

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of them."""
        return StoredRows(0, self.end - self.first, self.coding).row_bytes

    def of(self, rows: Array) -> Array:
        """Return them, given stored rows. Each keeps the scale of its row."""
        columns = rows[:, self.first : self.end]
        if self.rows_coding is None:
            return columns
        return np.concatenate([columns, rows[:, self.rows_coding.width :]], axis=1)

    def opened(self, files: Sequence[Path | None], topology: _core.Topology) -> _core.Features:
        """Return the rows of files of them, decoded."""
        rows = _core.Features(files, topology, direct=False)
        return rows if self.coding is None else rows.decoded(self.coding.core)


@dataclass
class Costs:
    """Bytes that the means of some vertices take.

    Attributes
    ----------
    sweeps : float
        Bytes that sweeps read, and the rows of the vertices themselves.
    vertices, edges : float
        How many there are, and their in-edges.
    """

    sweeps: float = 0
    vertices: float = 0
    edges: float = 0

    def sweep(self, stored: StoredRows, inner: int, halo: int, vertices: int, edges: int) -> None:
        """Count a sweep for so many vertices of a part. Of its rows, those of the inner vertices lie together."""
        apart = stored.row_bytes + _BLOCK
        scattered = min(edges * apart, inner * stored.row_bytes + min(edges, halo) * apart, stored.size)
        self.sweeps += scattered + vertices * stored.row_bytes
        self.vertices += vertices
        self.edges += edges

    def by_columns(self, stored: StoredRows, columns: Sequence[Columns]) -> float:
        """Return the bytes that are read and written by files of columns."""
        row = sum(each.row_bytes for each in columns)
        again = (len(columns) - 1) * _SOURCE * self.edges
        means = self.vertices * _NUMBER * stored.width
        return stored.size + 2 * stored.count * row + 2 * means + self.vertices * row + again

    def scratch(self, stored: StoredRows, columns: Sequence[Columns]) -> float:
        """Return the bytes of the files of columns, and of the means."""
        row = sum(each.row_bytes for each in columns)
        return stored.count * row + self.vertices * _NUMBER * stored.width


def has_space(folder: Path, size: float) -> bool:
    """Return whether the disk of a folder holds so many more bytes."""
    return shutil.disk_usage(folder).free > size
