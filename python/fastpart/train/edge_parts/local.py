"""A part of the edges in memory: copies of vertices, roots first, the edges between them, and who holds other copies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...parts import EdgePart
from ..edge_data import EdgeDataset
from ..data import SPLITS

Ids = npt.NDArray[np.int64]


@dataclass
class Copies:
    """The vertices of a part; those whose root is here come first.

    Attributes
    ----------
    num_roots : int
        Vertices whose root is here.
    vertices, degree : torch.Tensor
        Global id, and in-degree in the whole graph, int64.
    indptr, indices : numpy.ndarray
        In-edges that are here, int64.
    features : torch.Tensor
        float32, of all copies.
    labels : torch.Tensor
        Of the roots.
    splits : dict of torch.Tensor
        Labelled roots of each split.
    up, down : dict of torch.Tensor
        By peer, never empty: leaves here whose root is there; roots here that have a leaf there. Both ascend by vertex.
    """

    num_roots: int
    vertices: Tensor
    degree: Tensor
    indptr: Ids
    indices: Ids
    features: Tensor
    labels: Tensor
    splits: dict[str, Tensor]
    up: dict[int, Tensor]
    down: dict[int, Tensor]

    @property
    def local_degree(self) -> Tensor:
        """In-edges that are here, of each copy."""
        return torch.from_numpy(np.diff(self.indptr))


def load(dataset: EdgeDataset, index: int) -> Copies:
    """Return a part of the dataset."""
    part: EdgePart = dataset.partition.parts[index]
    k = dataset.partition.k
    is_root = np.asarray(part.root) == index
    order = np.argsort(~is_root, kind="stable")
    new = np.empty(len(order), np.int64)
    new[order] = np.arange(len(order))
    indptr, indices = _reordered(part, order, new)
    roots = order[: part.num_roots]
    labels, splits = dataset.labels(part)
    up = {peer: new[part.send(peer)] for peer in range(k)}
    down = {peer: new[part.recv(peer)] for peer in range(k)}
    assert part.features is not None
    features = np.asarray(part.features, np.float32)[order]
    return Copies(
        part.num_roots,
        torch.from_numpy(part.vertices[order]),
        torch.from_numpy(part.degree[order]),
        indptr,
        indices,
        torch.from_numpy(features),
        labels[torch.from_numpy(roots)],
        {name: _among(splits[name].numpy(), new, part.num_roots) for name in SPLITS},
        {peer: torch.from_numpy(ids) for peer, ids in up.items() if len(ids)},
        {peer: torch.from_numpy(ids) for peer, ids in down.items() if len(ids)},
    )


def _reordered(part: EdgePart, order: Ids, new: Ids) -> tuple[Ids, Ids]:
    """Return the rows in the new order, with the new ids."""
    counts = np.diff(part.indptr)[order]
    indptr = np.concatenate(([0], np.cumsum(counts)))
    places = np.arange(indptr[-1]) + np.repeat(part.indptr[:-1][order] - indptr[:-1], counts)
    return indptr, new[part.indices[places]]


def _among(ids: npt.NDArray[Any], new: Ids, roots: int) -> Tensor:
    """Return the new ids of those that are roots."""
    renumbered = np.sort(new[ids])
    return torch.from_numpy(renumbered[renumbered < roots])
