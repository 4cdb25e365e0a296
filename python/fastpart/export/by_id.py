"""Rows of the whole graph by the ids of the user, as PyG and GLT keep them. They are gathered part after part."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.parsing import named
from ..core.system import allocate
from ..partitions.parts import VertexPartData
from .common import MASKS, Array, Source, failed, tensor

BY_ID = r"label\.pt|(train|val|test)-partitions/partition\d+\.pt"
"""Regular expression of the files for which the user's ids count, in both formats."""


class WholeGraph:
    """The parts of all vertices and edges, the labels, and the splits, in the files of PyG's examples.

    The arrays of all edges and of all labels are mapped. In memory they would exceed the largest part.
    """

    def __init__(self, torch: Any, source: Source, inside: Path) -> None:
        self._torch = torch
        self._partition, self._inside = source.partition, inside
        n, m = len(source.partition), source.manifest["m"]
        self._edge_map = scratch(inside, 2 * m if source.manifest["directedness"] == "undirected" else m)
        self._labels: Array | None = None
        if "labels" in source.manifest:
            labels = source.partition.parts[0].labels
            self._labels = scratch(inside, n, labels.shape[1:], labels.dtype)

    def add(self, part: VertexPartData, edge_ids: Array) -> None:
        """Take over a part with the ids of its in-edges, and write its splits."""
        self._edge_map[edge_ids] = part.index
        if self._labels is not None:
            self._labels[part.inner] = part.labels
        for name in MASKS:
            mask = getattr(part, name)
            if mask is not None:
                folder = self._inside / f"{name}-partitions"
                folder.mkdir(exist_ok=True)
                file = folder / f"partition{part.index}.pt"
                save(self._torch, file, self._torch.from_numpy(part.inner[mask]))

    def finish(self, nodes: str, edges: str) -> None:
        """Write the parts of the vertices, the parts of the edges, and the labels."""
        arrays = {nodes: self._partition.assignment.astype(np.int64), edges: self._edge_map}
        if self._labels is not None:
            arrays["label.pt"] = self._labels
        for name, array in arrays.items():
            save(self._torch, self._inside / name, self._torch.from_numpy(array))


def in_coo(part: VertexPartData, edges: int) -> tuple[Array, Array]:
    """Return the sources and destinations of the in-edges of the inner vertices, by the ids of the user."""
    degrees = np.diff(part.indptr[: part.num_inner + 1])
    return part.vertices[part.indices[:edges]], np.repeat(part.inner, degrees)


def scratch(inside: Path, length: int, row: tuple[int, ...] = (), dtype: npt.DTypeLike = np.int64) -> Array:
    """Return an array in a nameless file. It is filled with -1, or with 0 if its type is no signed integer."""
    shape, dtype = (length, *row), np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    with named(inside), tempfile.TemporaryFile(dir=inside) as file:
        # Without this, writing to the map would kill the process when the disk is full.
        allocate(file.fileno(), size)
        array: Array = np.memmap(file, dtype, "r+", shape=shape)
        if dtype.kind == "i":
            array[:] = -1
        return array


def save(torch: Any, file: Path, content: Any) -> None:
    """Write one object as ``torch.save`` does."""
    try:
        with named(file), file.open("wb") as opened:
            torch.save(content, opened)
    except RuntimeError:  # how torch reports a failed write
        raise failed(file, "torch") from None


def tensors(torch: Any, arrays: dict[str, Array]) -> dict[str, Any]:
    """Return tensors over arrays, without copies."""
    return {name: tensor(torch, array) for name, array in arrays.items()}
