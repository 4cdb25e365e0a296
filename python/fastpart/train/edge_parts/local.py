"""A part of the edges in memory: copies of vertices, roots first, their edges, and the parts with other copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...partitions.part_files import Ids, LocalIds
from ...partitions.parts import EdgePartData
from ..edge_data import EdgeDataset
from ..full_graph.wire import Lists


@dataclass
class Copies:
    """The vertices of a part. Those whose root is here come first.

    Attributes
    ----------
    num_roots : int
        Vertices whose root is here.
    vertices, degree : torch.Tensor
        Global id, and in-degree in the whole graph, int64.
    indptr, indices : numpy.ndarray
        In-edges here, int64 and int32.
    features : torch.Tensor
        float32, of all copies.
    labels : torch.Tensor
        Labels of the roots.
    splits : dict of torch.Tensor
        Labelled roots of each split.
    up, down : Lists
        By part. ``up``: leaves here whose root is there. ``down``: roots here that have a leaf there. Both ascend by
        vertex.
    """

    num_roots: int
    vertices: Tensor
    degree: Tensor
    indptr: Ids
    indices: LocalIds
    features: Tensor
    labels: Tensor
    splits: dict[str, Tensor]
    up: Lists
    down: Lists

    @property
    def local_degree(self) -> Tensor:
        """In-edges of each copy that are here, int64."""
        return torch.from_numpy(np.diff(self.indptr)).to(self.degree.device)

    def to(self, device: torch.device) -> Copies:
        """Return a copy with all tensors on a device."""

        def moved(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: moved(item) for key, item in value.items()}
            return value.to(device) if isinstance(value, Tensor | Lists) else value

        return Copies(**{item.name: moved(getattr(self, item.name)) for item in fields(self)})


def load(dataset: EdgeDataset, index: int) -> Copies:
    """Return a part of the dataset."""
    part: EdgePartData = dataset.partition.parts[index]
    k = dataset.partition.k
    is_root = np.asarray(part.root) == index
    order = np.argsort(~is_root, kind="stable")
    new = np.empty(len(order), np.int32)
    new[order] = np.arange(len(order))
    indptr, indices = _reordered(part, order, new)
    assert part.features is not None
    return Copies(
        part.num_roots,
        torch.from_numpy(part.vertices[order]),
        torch.from_numpy(part.degree[order]),
        indptr,
        indices,
        torch.from_numpy(np.asarray(part.features[order], np.float32)),
        dataset.labels(part)[torch.from_numpy(order[: part.num_roots])],
        {
            name: torch.from_numpy(np.sort(new[ids.numpy()]).astype(np.int64))
            for name, ids in dataset.splits(part).items()
        },
        *(_by_part(k, new, ids_of) for ids_of in (part.send, part.recv)),
    )


def _by_part(k: int, new: LocalIds, ids_of: Callable[[int], LocalIds]) -> Lists:
    return Lists([torch.from_numpy(new[ids_of(part)].astype(np.int64)) for part in range(k)])


def _reordered(part: EdgePartData, order: Ids, new: LocalIds) -> tuple[Ids, LocalIds]:
    """Return the rows in the new order, with the new ids."""
    counts = np.diff(part.indptr)[order]
    indptr = np.concatenate(([0], np.cumsum(counts)))
    places = np.arange(indptr[-1]) + np.repeat(part.indptr[:-1][order] - indptr[:-1], counts)
    return indptr, new[part.indices[places]]
