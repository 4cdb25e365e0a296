"""New ids of vertices and edges, part after part, as systems number them that keep a contiguous range per machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ..core.parameters import shown
from ..core.parsing import named
from ..errors import GraphFormatError
from ..partitions.parts import VertexPartData, part_name
from .common import Array, Source


class PartOrder:
    """New ids: vertices by part, then by old id; edges by part of their destination, then by destination and record.

    The old ids lie in ``orig_nids.npy`` and ``orig_eids.npy`` of the export (int64, row = new id).

    Attributes
    ----------
    vertices, edges : numpy.ndarray
        First new id of each part, int64, of length k + 1.
    """

    def __init__(self, source: Source, inside: Path, edge_counts: list[int]) -> None:
        self._partition = source.partition
        self.vertices: Array = np.concatenate(([0], np.cumsum(source.partition.loads)))
        self.edges: Array = np.concatenate(([0], np.cumsum(edge_counts, dtype=np.int64)))
        self._orig_eids = inside / "orig_eids.npy"
        _begin_map(self._orig_eids, self.edges[-1])
        orig_nids = inside / "orig_nids.npy"
        _begin_map(orig_nids, self.vertices[-1])
        for part in source.parts():
            append(orig_nids, part.inner)
        self._orig_nids: Array = np.load(orig_nids, mmap_mode="r")

    def add_edges(self, edge_ids: Array) -> None:
        """Write the old ids of the edges of the next part."""
        append(self._orig_eids, edge_ids)

    def sources(self, part: VertexPartData, edges: int) -> Array:
        """Return the local sources of the in-edges of the inner vertices, int64."""
        indices: Array = part.indices[:edges].astype(np.int64)
        if edges and indices.max() >= part.num_inner + part.halo_sizes[0]:
            raise GraphFormatError(f"{self._name(part)}: an inner vertex has an in-edge from two hops away")
        return indices

    def new_ids(self, part: VertexPartData) -> tuple[Array, Array]:
        """Return the new ids of the inner vertices and their neighbours, and the parts that own them."""
        inner, halo = part.num_inner, part.halo[: part.halo_sizes[0]]
        if len(halo) and not 0 <= halo.min() <= halo.max() < len(self._partition):
            raise GraphFormatError(f"{self._name(part)}: vertices.npy holds an id outside 0..n-1")
        owners = np.full(inner + len(halo), part.index)
        owners[inner:] = self._partition.assignment[halo]
        ids = np.arange(len(owners)) + self.vertices[part.index]
        by_owner = inner + np.argsort(owners[inner:], kind="stable")
        bounds = np.searchsorted(owners[by_owner], np.arange(self._partition.k + 1))
        for owner in np.flatnonzero(np.diff(bounds)):
            those = by_owner[bounds[owner] : bounds[owner + 1]]
            first, end = self.vertices[owner : owner + 2]
            ids[those] = first + np.searchsorted(self._orig_nids[first:end], part.vertices[those])
        return ids, owners

    def _name(self, part: VertexPartData) -> str:
        return shown((self._partition.folder or Path()) / part_name(part.index))


def _begin_map(file: Path, length: int) -> None:
    """Write the header of a .npy file of ``length`` int64."""
    header = {"descr": "<i8", "fortran_order": False, "shape": (int(length),)}
    with file.open("wb") as opened:
        np.lib.format.write_array_header_1_0(opened, header)


def append(file: Path, rows: Array) -> None:
    """Append the bytes of an array to a file."""
    with named(file), file.open("ab") as opened:
        opened.write(np.ascontiguousarray(rows).data)
