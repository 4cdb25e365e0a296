"""A part in memory: the rows of its inner vertices, and their in-edges in blocks, by the part of the source."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ...partitions.part_files import Ids
from ...partitions.parts import VertexPartData
from ..data import Dataset

Edges = tuple[Ids, Ids]
"""Where the in-edges of each inner vertex begin, and their sources."""


@dataclass
class Blocks:
    """The rows A[p, :] of the matrix of the edges, for the part p of a vertex partition.

    Attributes
    ----------
    index : int
        Number of the part.
    sizes : list of int
        Inner vertices of each part.
    vertices, degree : torch.Tensor
        Global id and in-degree in the whole graph of the inner vertices, int64.
    edges : dict of tuple of numpy.ndarray
        The blocks A[p, q] that are not empty, int64, by q. Sources are rows of part q.
    halo : int
        Number of sources in other parts.
    features : torch.Tensor
        float32, of the inner vertices.
    labels : torch.Tensor
        Labels of the inner vertices.
    splits : dict of torch.Tensor
        Labelled inner vertices of each split.
    """

    index: int
    sizes: list[int]
    vertices: Tensor
    degree: Tensor
    edges: dict[int, Edges]
    halo: int
    features: Tensor
    labels: Tensor
    splits: dict[str, Tensor]

    @property
    def num_edges(self) -> int:
        """In-edges of the inner vertices."""
        return sum(len(indices) for _, indices in self.edges.values())


def load(dataset: Dataset, index: int, device: torch.device) -> Blocks:
    """Return the blocks of a part, with tensors on a device."""
    parts = dataset.partition.parts
    part = parts[index]
    inner = part.num_inner
    edges = _edges(part)
    return Blocks(
        index,
        [other.num_inner for other in parts],
        torch.from_numpy(np.array(part.inner)).to(device),
        torch.from_numpy(np.array(part.degree[:inner])).to(device),
        edges,
        part.halo_sizes[0],
        torch.from_numpy(np.array(part.features, np.float32)).to(device),
        dataset.labels(part).to(device),
        {name: ids.to(device) for name, ids in dataset.splits(part).items()},
    )


def _edges(part: VertexPartData) -> dict[int, Edges]:
    """Return the in-edges of the inner vertices, by the part of their source."""
    inner = part.num_inner
    owner = np.concatenate([np.full(inner, part.index), part.halo_parts])
    row = np.concatenate([np.arange(inner), part.halo_rows])
    indptr = part.indptr[: inner + 1]  # a halo of two hops has rows, too
    sources = part.indices[: indptr[-1]]
    ends = np.repeat(np.arange(inner), np.diff(indptr))
    owners = owner[sources]
    blocks = {}
    for q in np.unique(owners):
        those = np.flatnonzero(owners == q)
        counts = np.bincount(ends[those], minlength=inner)
        blocks[int(q)] = (np.concatenate(([0], np.cumsum(counts))), row[sources[those]])
    return blocks
