"""Rows of the whole graph by the ids of the user, as PyG and GLT keep them. They are gathered part after part."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.parsing import named
from ..core.system import allocate
from ..partitions.part_rows import RelationData
from ..partitions.parts import VertexPartData
from ..partitions.types import edge_types, in_edges_of, key_of, vertex_types
from .common import MASKS, Array, Source, failed, tensor

BY_ID = r"label\.pt|(train|val|test)-partitions/partition\d+\.pt"
"""Regular expression of the files for which the user's ids count, in both formats."""


class WholeGraph:
    """The parts of all vertices and edges and, of a graph without types, the labels and splits of PyG's examples.

    The arrays of all edges and of all labels are mapped. In memory they would exceed the largest part.
    """

    def __init__(self, torch: Any, source: Source, inside: Path) -> None:
        self._torch = torch
        self._partition, self._inside = source.partition, inside
        self._owners = {of: scratch(inside, of.num_ids) for of in edge_types(source.partition)}
        self._typed = source.typed
        self._labels: Array | None = None
        if "labels" in source.manifest:
            labels = source.partition.parts[0].labels
            self._labels = scratch(inside, len(source.partition), labels.shape[1:], labels.dtype)

    def add(self, part: VertexPartData, edge_ids: Mapping[str, Array]) -> None:
        """Take over a part with the ids of the in-edges of each relation, and write its splits."""
        for of, owners in self._owners.items():
            owners[edge_ids[of.name]] = part.index
        if self._typed:
            return
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
        """Write the parts of the vertices, the parts of the edges, and the labels.

        In a graph with types, the names of the files have ``{}`` in the place of the type or the relation.
        """
        assignment = self._partition.assignment.astype(np.int64)
        arrays = {
            nodes.format(each.name): assignment[each.first : each.range.stop]
            for each in vertex_types(self._partition)
        }
        arrays |= {edges.format("__".join(key_of(of))): owners for of, owners in self._owners.items()}
        if self._labels is not None:
            arrays["label.pt"] = self._labels
        for name, array in arrays.items():
            file = self._inside / name
            file.parent.mkdir(exist_ok=True)
            save(self._torch, file, self._torch.from_numpy(array))


def edge_ids_within(of: RelationData) -> Array:
    """Return the ids within a relation of its in-edges of inner vertices."""
    return of.type.ids_within(of.edge_ids[: of.num_of_inner], int(of._manifest["m"]))


def in_coo(part: VertexPartData, of: RelationData) -> tuple[Array, Array]:
    """Return the sources and destinations of the in-edges of a relation of inner vertices, by ids in the types."""
    targets, counts, sources = in_edges_of(part, of)
    return sources, np.repeat(targets, counts)


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
