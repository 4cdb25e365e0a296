"""Means of the rows of neighbours, block by block: for layers that take nothing else of them.

Where memory holds the rows, the core adds them up where they lie. The means of the neighbours of all vertices need each
row as often as it has out-edges, in random order. Where memory holds neither the rows nor the sums of all vertices,
either the rows are read again for each group of vertices whose sums it holds (*sweeps*), or once, to write files of
columns. Then memory holds one of these at a time, and the lists of neighbours are read again for each.
:class:`Costs` says which takes fewer bytes. The result is the same to the last bit.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from ... import _core
from ...core.notes import log
from ...core.parameters import shown, sized
from ...loading.rows.sources import Array, RowFiles
from ...partitions.coding import Coding
from ...partitions.parts import VertexPartData
from ..ranks import barrier, from_first, is_first, largest, total
from .hops import Block, Blocks, VertexMask, Vertices, piece

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


Floats = npt.NDArray[np.float32]

Summed = tuple[int, Vertices, Floats, Floats]
"""A part, some of its inner vertices by local id, their rows, and the means of the rows of their neighbours."""


class MeansOfRows:
    """Means of rows over the in-edges of the vertices of a process.

    Parameters
    ----------
    topology : _core.Topology
        The in-edges.
    parts : sequence of VertexPartData
        All parts.
    own : Blocks
        The vertices of this process.
    folder : path
        For files of columns. All processes see it.
    free_bytes : int
        Memory for sums, or for a file of columns.
    """

    def __init__(
        self,
        topology: _core.Topology,
        parts: Sequence[VertexPartData],
        own: Blocks,
        folder: Path,
        free_bytes: int,
    ) -> None:
        self._topology, self._parts, self._own, self._folder = topology, parts, own, folder
        self._free_bytes = max(free_bytes, piece(1))
        self._files: list[Path] = []

    def of(
        self,
        rows: _core.Features,
        stored: tuple[_core.Features, StoredRows],
        wanted: VertexMask | None,
        weights: Floats | None,
    ) -> Iterator[Summed]:
        """Yield the wanted vertices of this process with rows and means. All processes call it together.

        Parameters
        ----------
        rows : _core.Features
            The rows, decoded.
        stored : tuple
            The rows as they are in their files, and what these are.
        wanted : callable, optional
            Returns the mask of the wanted inner vertices of a part. Default: all.
        weights : numpy.ndarray, optional
            A factor for each row. Default: 1.
        """
        columns = self._chosen(rows, stored[1], wanted)
        if columns:
            return self._by_columns(stored[0], columns, wanted, weights)
        return self._by_rows(rows, wanted, weights)

    def clear(self) -> None:
        """Remove the files of this process, once no process needs them."""
        for file in self._files:
            file.unlink()
        self._files = []

    def _chosen(self, rows: _core.Features, stored: StoredRows, wanted: VertexMask | None) -> list[Columns]:
        """Return the columns of each file, the same in all processes. None: rows are not split."""
        if not largest(torch.tensor(int(rows.is_on_disk))):
            return []
        columns = stored.split(from_first(min(self._free_bytes, _core.memory_budget() // 2)))
        costs = Costs()
        for number, vertices in self._split(rows, wanted):
            part, edges = self._parts[number], int(self._own.degrees(number, vertices).sum())
            costs.sweep(stored, part.num_inner, part.halo_sizes[0], len(vertices), edges)
        costs = Costs(*total(torch.tensor([costs.sweeps, costs.vertices, costs.edges]).double()).tolist())
        split = costs.by_columns(stored, columns)
        fits = has_space(self._folder, costs.scratch(stored, columns))
        pays = from_first(fits and split < costs.sweeps)
        if is_first():
            ways = (
                f"{sized(int(split))} in {len(columns)} files of columns",
                f"{sized(int(costs.sweeps))} by sweeps",
            )
            chosen, other = ways if pays else ways[::-1]
            reason = "" if fits else f": too little space in {shown(self._folder)} for columns"
            log.info(
                "means of the neighbours of %d vertices: %s instead of %s%s",
                costs.vertices,
                chosen,
                other,
                reason,
            )
        return columns if pays else []

    def _split(self, rows: _core.Features, wanted: VertexMask | None) -> Iterator[Block]:
        sums, on_disk = 16 * rows.row_shape[0], rows.is_on_disk
        most = self._free_bytes if on_disk else piece(1)
        return self._own.split(wanted, lambda degrees: sums + 24 * on_disk * degrees, most)

    def _by_rows(
        self, rows: _core.Features, wanted: VertexMask | None, weights: Floats | None
    ) -> Iterator[Summed]:
        for part, vertices in self._split(rows, wanted):
            ids = self._own.rows(part, vertices)
            yield part, vertices, rows.gather(ids), rows.means(ids, torch.get_num_threads(), weights)

    def _by_columns(
        self,
        stored: _core.Features,
        columns: Sequence[Columns],
        wanted: VertexMask | None,
        weights: Floats | None,
    ) -> Iterator[Summed]:
        self._write(stored, columns)
        barrier()
        opened = [self._opened(number, each) for number, each in enumerate(columns)]
        means = RowFiles()
        for number, rows in enumerate(opened):
            loaded = rows.loaded()
            for part, vertices, places, count in self._placed(self._split(loaded, wanted), wanted):
                found = loaded.means(self._own.rows(part, vertices), torch.get_num_threads(), weights)
                means.put(self._file("means", number, part), count, places, found)
            del loaded
        self._files += means.paths
        del means
        width = sum(each.end - each.first for each in columns)
        split = self._own.split(wanted, lambda degrees: np.full_like(degrees, 16 * width), piece(1))
        for part, vertices, places, _ in self._placed(split, wanted):
            ids = self._own.rows(part, vertices)
            x = np.concatenate([rows.gather(ids) for rows in opened], axis=1)
            files = (self._file("means", number, part) for number in range(len(columns)))
            yield (
                part,
                vertices,
                x,
                np.concatenate([np.load(f, mmap_mode="r")[places] for f in files], axis=1),
            )

    def _write(self, stored: _core.Features, columns: Sequence[Columns]) -> None:
        """Write the columns of the parts of this process, from one pass over their rows."""
        files, row_bytes = RowFiles(), stored.dtype.itemsize * stored.row_shape[0]
        split = self._own.split(None, lambda degrees: np.full_like(degrees, row_bytes), piece(1))
        for part, vertices, places, count in self._placed(split, None):
            rows = stored.gather(self._own.rows(part, vertices))
            for number, each in enumerate(columns):
                files.put(self._file("columns", number, part), count, places, each.of(rows))
        files.flush()
        self._files += files.paths

    def _opened(self, number: int, columns: Columns) -> _core.Features:
        files = [
            self._file("columns", number, part) if data.num_inner else None
            for part, data in enumerate(self._parts)
        ]
        return columns.opened(files, self._topology)

    def _placed(
        self, found: Iterable[Block], wanted: VertexMask | None
    ) -> Iterator[tuple[int, Vertices, slice, int]]:
        """Yield blocks, the places of their vertices among the wanted ones of the part, and how many these are."""
        known, first, count = -1, 0, 0
        for part, vertices in found:
            if part != known:
                known, first, count = part, 0, len(self._own.vertices(part, wanted))
            yield part, vertices, slice(first, first + len(vertices)), count
            first += len(vertices)

    def _file(self, what: str, number: int, part: int) -> Path:
        return self._folder / f"{what}-{number}-{part}.npy"
