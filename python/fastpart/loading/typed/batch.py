"""One batch of a typed graph: nodes by type and level, and the in-edges that were sampled between them by relation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ...core.calls import called_well
from ...partitions.types import EdgeKey
from ..dropout import dropout


@dataclass(frozen=True, eq=False)
class TypedBlock:
    """In-edges that one layer of a network reads. The targets of a type are the first of its sources.

    Attributes
    ----------
    num_sources, num_targets : dict of int
        By type: rows that the layer reads, and rows that it returns. Both have all types.
    indptr, indices : dict of torch.Tensor
        By relation, int32: where the in-edges of each target of its type begin, and the source of each in-edge among
        those of its type. Both have all relations.
    """

    num_sources: dict[str, int]
    num_targets: dict[str, int]
    indptr: dict[EdgeKey, Tensor]
    indices: dict[EdgeKey, Tensor]

    @cached_property
    def edge_index_dict(self) -> dict[EdgeKey, Tensor]:
        """Sources and targets of each relation, int64, of shape (2, edges). They are the first of the batch."""
        return {key: _edge_index(self.indptr[key], indices) for key, indices in self.indices.items()}


@dataclass(frozen=True, eq=False, repr=False)
class TypedBatch:
    """A mini-batch of a typed graph with the names of PyG's HeteroData. All of its tensors are on one device.

    The nodes of a type are ordered by *levels*, as in :class:`fastpart.loading.Batch`: level 0 are the seeds, and the
    sources of the in-edges that were sampled for level h form level h + 1. The seeds are the first ``batch_size`` rows
    of ``input_type``. Each mapping by type has all types and each by relation all relations, but for those that
    say otherwise. Relations are (type of the sources, name, type of the targets).

    Attributes
    ----------
    input_type : str
        The type of the seeds.
    x_dict : dict of torch.Tensor
        Features of the nodes by type, of shape (nodes, ...). Types without features are left out.
    y : torch.Tensor or None
        Labels of the seeds. None if their type has none.
    n_id_dict : dict of torch.Tensor
        int64: id of each node in the graph, by type.
    indptr_dict, indices_dict : dict of torch.Tensor
        By relation, int32: the in-edges by target. Those of target i are ``indices[indptr[i] : indptr[i + 1]]``, places
        among the nodes of the sources' type.
    seed_time_dict : dict of torch.Tensor
        int64: time of the seed that each node belongs to, by type, as in :class:`fastpart.loading.Batch`. Empty unless
        batches are temporal.
    e_id_dict : dict of torch.Tensor
        int64: id of each in-edge in the graph, by relation. Empty with ``edge_ids=False``.
    edge_attr_dict : dict of torch.Tensor
        Features of the in-edges by relation. Relations without features are left out.
    rows_dict : dict of numpy.ndarray
        uint32: row of each node in the directory among those of its type, by type. The rows of part p are its inner
        vertices, behind those of the parts before it.
    num_sampled_nodes_dict, num_sampled_edges_dict : dict of list of int
        Nodes of each level by type, and in-edges of each hop by relation.
    input_id : torch.Tensor
        int64, of shape (batch_size,): position of each seed among the vertices of the loader.
    batch_size : int
        Seeds of this rank. It may be 0.
    global_size : int
        Seeds of this step on all ranks. It is at least 1.
    seed, epoch, step : int
        Which batch it is.
    """

    input_type: str
    x_dict: dict[str, Tensor]
    y: Tensor | None
    n_id_dict: dict[str, Tensor]
    indptr_dict: dict[EdgeKey, Tensor]
    indices_dict: dict[EdgeKey, Tensor]
    seed_time_dict: dict[str, Tensor]
    e_id_dict: dict[EdgeKey, Tensor]
    edge_attr_dict: dict[EdgeKey, Tensor]
    rows_dict: dict[str, npt.NDArray[np.uint32]]
    num_sampled_nodes_dict: dict[str, list[int]]
    num_sampled_edges_dict: dict[EdgeKey, list[int]]
    input_id: Tensor
    batch_size: int
    global_size: int
    seed: int
    epoch: int
    step: int

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all types, seeds included."""
        return sum(map(len, self.n_id_dict.values()))

    @property
    def num_edges(self) -> int:
        """Number of in-edges of all relations."""
        return sum(map(len, self.indices_dict.values()))

    @cached_property
    def edge_index_dict(self) -> dict[EdgeKey, Tensor]:
        """Sources and targets by relation, as places among the nodes of their types: int64, of shape (2, edges)."""
        return {
            key: _edge_index(self.indptr_dict[key], indices) for key, indices in self.indices_dict.items()
        }

    def blocks(self) -> list[TypedBlock]:
        """Return the in-edges that each layer reads, the first layer first.

        Each layer reads a prefix of the rows of each type and returns a shorter one. The last returns the seeds.
        """
        hops = len(self.num_sampled_nodes_dict[self.input_type]) - 1
        return [self._block(hops - layer) for layer in range(hops)]

    def _block(self, hops: int) -> TypedBlock:
        levels = self.num_sampled_nodes_dict.items()
        targets = {name: sum(counts[:hops]) for name, counts in levels}
        edges = {key: sum(counts[:hops]) for key, counts in self.num_sampled_edges_dict.items()}
        return TypedBlock(
            num_sources={name: targets[name] + counts[hops] for name, counts in levels},
            num_targets=targets,
            indptr={key: indptr[: targets[key[2]] + 1] for key, indptr in self.indptr_dict.items()},
            indices={key: indices[: edges[key]] for key, indices in self.indices_dict.items()},
        )

    def hetero_data(self) -> Any:
        """Return a ``torch_geometric.data.HeteroData`` with the names and values of PyG's loaders."""
        from torch_geometric.data import HeteroData

        data = HeteroData()
        for name, n_id in self.n_id_dict.items():
            of_type = data[name]
            of_type.n_id, of_type.num_nodes = n_id, len(n_id)
            of_type.num_sampled_nodes = self.num_sampled_nodes_dict[name]
            if name in self.seed_time_dict:
                of_type.seed_time = self.seed_time_dict[name]
            if name in self.x_dict:
                of_type.x = self.x_dict[name]
        for key, edge_index in self.edge_index_dict.items():
            data[key].edge_index = edge_index
            data[key].num_sampled_edges = self.num_sampled_edges_dict[key]
            for what, of_relations in {"e_id": self.e_id_dict, "edge_attr": self.edge_attr_dict}.items():
                if key in of_relations:
                    data[key][what] = of_relations[key]
        seeds = data[self.input_type]
        seeds.batch_size, seeds.input_id = self.batch_size, self.input_id
        if self.y is not None:
            seeds.y = self.y
        return data

    @called_well
    def dropout(self, h: Tensor, share: float, name: str, layer: int = 0) -> Tensor:
        """Apply dropout to the first rows of a type, as :meth:`fastpart.loading.Batch.dropout` does.

        Parameters
        ----------
        h : torch.Tensor
            Values of shape (rows, ...). Row i belongs to node i of the type.
        share : float
            Share of the entries that become 0. 0 outside training.
        name : str
            The type.
        layer : int
            Number of the layer.
        """
        return dropout(h, share, self.n_id_dict[name][: len(h)], self.seed, self.epoch, self.step, layer)

    def to(self, device: torch.device | str | int, non_blocking: bool = False) -> TypedBatch:
        """Return the batch on another device."""
        return self._mapped(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> TypedBatch:
        """Return the batch in page-locked memory, from which copies to a GPU need not block."""
        return self._mapped(lambda tensor: tensor.pin_memory())

    def _mapped(self, change: Callable[[Tensor], Tensor]) -> TypedBatch:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: _changed(value, change) for name, value in values.items()})

    def __repr__(self) -> str:
        return (
            f"<TypedBatch: {self.batch_size} of {self.global_size} seeds of {self.input_type}, {self.num_nodes} nodes, "
            f"{self.num_edges} edges>"
        )


def _changed(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Mapping):
        return {key: _changed(each, change) for key, each in value.items()}
    return change(value) if isinstance(value, Tensor) else value


def _edge_index(indptr: Tensor, indices: Tensor) -> Tensor:
    targets = torch.arange(len(indptr) - 1, device=indptr.device)
    targets = targets.repeat_interleave(indptr.diff(), output_size=len(indices))
    return torch.stack([indices.long(), targets])
