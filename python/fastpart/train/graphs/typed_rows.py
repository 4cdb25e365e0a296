"""A typed graph for one layer of a network: the in-edges of each relation, between rows by type."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from ...loading import TypedBatch
from ...partitions.types import EdgeKey
from ..neighbourhood import dropped_by
from .kernels import CPU, Ids, Kernel

Module = TypeVar("Module")


@dataclass(frozen=True, eq=False)
class RelationRows:
    """The in-edges of one relation, from sources of one type to targets of one type, both numbered from 0.

    Attributes
    ----------
    indptr, indices : numpy.ndarray
        Where the in-edges of each target begin, and the source of each in-edge.
    num_sources : int
        Number of sources.
    edge_attr : torch.Tensor or None
        Features of the in-edges.
    """

    indptr: Ids
    indices: Ids
    num_sources: int
    device: torch.device = CPU
    edge_attr: Tensor | None = None

    @property
    def num_targets(self) -> int:
        """Number of targets."""
        return len(self.indptr) - 1

    @property
    def num_edges(self) -> int:
        """Number of in-edges."""
        return len(self.indices)

    @cached_property
    def kernel(self) -> Kernel:
        """Sums over the in-edges."""
        return Kernel(self.indptr, self.indices, self.num_sources, self.device)

    @cached_property
    def _counts(self) -> Tensor:
        counts = torch.from_numpy(np.diff(self.indptr).astype(np.int64))
        return counts.clamp(min=1).unsqueeze(1).to(self.device)

    @cached_property
    def edge_index(self) -> Tensor:
        """Source and target of each in-edge, int64 of shape (2, edges), as the layers of PyG take them."""
        targets = np.repeat(np.arange(self.num_targets), np.diff(self.indptr))
        return torch.from_numpy(np.stack([self.indices.astype(np.int64), targets])).to(self.device)

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean of the rows of the sources over the in-edges of each target, 0 without in-edges."""
        return self.kernel.summed(x) / self._counts.to(x.dtype)

    def first(self, targets: int, sources: int) -> RelationRows:
        """Return the in-edges of the first targets. They need no more than the first ``sources``."""
        end = int(self.indptr[targets])
        edge_attr = None if self.edge_attr is None else self.edge_attr[:end]
        return RelationRows(self.indptr[: targets + 1], self.indices[:end], sources, self.device, edge_attr)


@dataclass(frozen=True, eq=False)
class TypedRows:
    """What a layer over types reads: rows of the sources by type. It returns rows of the targets by type.

    The targets of a type are the first of its sources. Every mapping has all types, or all relations.

    Attributes
    ----------
    num_targets, num_sources : mapping of int
        By type.
    relations : mapping of RelationRows
        By (type of the sources, name, type of the targets).
    vertices : mapping of torch.Tensor
        By type: id of each source in the graph, int64.
    """

    num_targets: Mapping[str, int]
    num_sources: Mapping[str, int]
    relations: Mapping[EdgeKey, RelationRows]
    vertices: Mapping[str, Tensor]

    @classmethod
    def by_layer(cls, batch: TypedBatch, device: torch.device = CPU) -> list[TypedRows]:
        """Return the rows of a batch for each layer of a network, the first layer first."""
        rows = []
        for block in batch.blocks():
            relations = {
                key: RelationRows(
                    block.indptr[key].numpy(),
                    indices.numpy(),
                    block.num_sources[key[0]],
                    device,
                    batch.edge_attr_dict[key][: len(indices)].to(device)
                    if key in batch.edge_attr_dict
                    else None,
                )
                for key, indices in block.indices.items()
            }
            vertices = {
                name: batch.n_id_dict[name][:count].to(device) for name, count in block.num_sources.items()
            }
            rows.append(cls(block.num_targets, block.num_sources, relations, vertices))
        return rows

    def read(self, of_relations: Iterable[tuple[EdgeKey, Module]]) -> Iterator[tuple[EdgeKey, Module]]:
        """Yield the relations that a layer has to read with what it has of each: those with in-edges here.

        If gradients are computed, these are all relations. Otherwise the weights of some would have no gradient, and
        optimizers would treat them unlike those of a process beside others, which have gradients of 0.
        """
        every = torch.is_grad_enabled()
        return (each for each in of_relations if every or self.relations[each[0]].num_edges)

    def targets(self, x: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the rows of the targets among those of the sources."""
        return {name: rows[: self.num_targets[name]] for name, rows in x.items()}

    def dropped(self, h: Mapping[str, Tensor], share: float) -> dict[str, Tensor]:
        """Apply dropout to rows of the targets. The choice depends on torch's random numbers and on the ids."""
        return {name: dropped_by(rows, share, self.vertices[name][: len(rows)]) for name, rows in h.items()}
