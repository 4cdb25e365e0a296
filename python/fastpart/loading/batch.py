"""One batch: nodes by level, and the in-edges that were sampled between them, by type and by relation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..core.calls import called_well
from ..partitions.types import ONLY_RELATION, ONLY_TYPE, EdgeKey
from .dropout import dropout


@dataclass(frozen=True, eq=False)
class Block:
    """In-edges that one layer of a network reads. Its targets are the first of its sources.

    Attributes
    ----------
    num_sources, num_targets : int
        Rows that the layer reads, and rows that it returns.
    indptr : torch.Tensor
        int32, of shape (num_targets + 1,): where the in-edges of each target begin.
    indices : torch.Tensor
        int32, of shape (edges,): row of the source of each in-edge.
    """

    num_sources: int
    num_targets: int
    indptr: Tensor
    indices: Tensor

    @property
    def num_edges(self) -> int:
        """Number of in-edges. They are the first of the batch, so ``batch.edge_attr[: block.num_edges]`` is theirs."""
        return len(self.indices)

    @cached_property
    def edge_index(self) -> Tensor:
        """Sources and targets, int64, of shape (2, edges)."""
        return _edge_index(self.indptr, self.indices)


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
class MiniBatch(ABC):
    """The base of :class:`Batch` and :class:`TypedBatch`. A graph without types has one type and relation."""

    y: Tensor | None
    input_id: Tensor
    batch_size: int
    global_size: int
    seed: int
    epoch: int
    step: int

    @abstractmethod
    def _by_name(self, what: str) -> dict[Any, Any]:
        """Return what the batch holds of each type or relation, by its name in :class:`Batch`, such as "n_id"."""

    @staticmethod
    @abstractmethod
    def _fields(by_name: Mapping[str, dict[Any, Any]]) -> dict[str, Any]:
        """Return the attributes with such values of :meth:`_by_name`."""

    @classmethod
    def _of(cls, by_name: Mapping[str, dict[Any, Any]], **others: Any) -> Self:
        """Return the batch with all values of :meth:`_by_name`, and its other attributes."""
        return cls(**cls._fields(by_name), **others)

    def _replaced(self, **values: dict[Any, Any]) -> Self:
        """Return the batch with other values of :meth:`_by_name`."""
        return replace(self, **self._fields(values))

    @property
    def num_nodes(self) -> int:
        """Number of nodes of all types, seeds included."""
        return sum(map(len, self._by_name("n_id").values()))

    @property
    def num_edges(self) -> int:
        """Number of in-edges of all relations."""
        return sum(map(len, self._by_name("indices").values()))

    def _without(self, stay: Mapping[EdgeKey, npt.NDArray[np.bool_]]) -> Self:
        """Return the batch without some in-edges, given the mask of those that stay of some relations."""
        names = ("indptr", "num_sampled_edges", "indices", "e_id", "edge_attr")
        changed = {name: dict(self._by_name(name)) for name in names}
        indptr, of_hops, *of_edges = changed.values()
        for key, mask in stay.items():
            places = torch.from_numpy(np.flatnonzero(mask))
            rows, of_hops[key] = rows_without(mask, indptr[key].numpy(), of_hops[key])
            indptr[key] = torch.from_numpy(rows)
            for of_relations in of_edges:
                if key in of_relations:
                    of_relations[key] = of_relations[key][places]
        return self._replaced(**changed)

    def _ends(self, key: EdgeKey) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the ids of the source and of the target of each in-edge of a relation."""
        indptr, indices = (self._by_name(name)[key].numpy() for name in ("indptr", "indices"))
        sources, targets = (self._by_name("n_id")[key[end]].numpy() for end in (0, 2))
        return sources[indices], np.repeat(targets[: len(indptr) - 1], np.diff(indptr))

    def to(self, device: torch.device | str | int, non_blocking: bool = False) -> Self:
        """Return the batch on another device."""
        return self._mapped(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Self:
        """Return the batch in page-locked memory, from which copies to a GPU need not block."""
        return self._mapped(lambda tensor: tensor.pin_memory())

    def _mapped(self, change: Callable[[Tensor], Tensor]) -> Self:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: _changed(value, change) for name, value in values.items()})

    def _dropout(self, h: Tensor, share: float, n_id: Tensor, layer: int) -> Tensor:
        return dropout(h, share, n_id[: len(h)], self.seed, self.epoch, self.step, layer)


@dataclass(frozen=True, eq=False, repr=False)
class Batch(MiniBatch):
    """A mini-batch with the names of PyG. All of its tensors are on one device.

    The nodes are ordered by *levels*. Level 0 are the seeds. The sources of the in-edges that were sampled for level h
    form level h + 1. In layered batches, the default, a vertex occurs once in each level that it is in. In merged
    batches, as those of PyG, it occurs once. A network of L layers computes its outputs for the seeds, the first
    ``batch_size`` rows, from L hops.

    Attributes
    ----------
    x : torch.Tensor or None
        Features of the nodes, of shape (nodes, ...), in the dtype of the directory. None if it has no features.
    y : torch.Tensor or None
        Labels of the seeds only: int64 of shape (batch_size,), or uint8 of shape (batch_size, classes). None if the
        directory has none.
    n_id : torch.Tensor
        int64, of shape (nodes,): original id of each node.
    e_id : torch.Tensor or None
        int64, of shape (edges,): id of each in-edge, as in ``edge_ids.npy``: record r, or m + r for its opposite
        direction. None with ``edge_ids=False``.
    edge_attr : torch.Tensor or None
        Features of the in-edges, of shape (edges, ...). None if the directory has none, or with ``edge_ids=False``.
    rows : numpy.ndarray
        uint32, of shape (nodes,): row of each node in the directory. The rows of part p are its inner vertices, behind
        those of the parts before it.
    seed_time : torch.Tensor or None
        int64, of shape (nodes,): time of the seed that each node belongs to, in temporal batches. There a node is a
        vertex with such a time, so a vertex may occur several times in a level, with the neighbours that it had then.
    input_id : torch.Tensor
        int64, of shape (batch_size,): position of each seed among the vertices of the loader.
    indptr, indices : torch.Tensor
        The in-edges by target, int32: those of node i are ``indices[indptr[i] : indptr[i + 1]]``, as rows of their
        sources. Nodes of the last level have no in-edges and no entry.
    num_sampled_nodes, num_sampled_edges : list of int
        Nodes of each level, and in-edges of each hop.
    batch_size : int
        Seeds of this rank. It may be 0.
    global_size : int
        Seeds of this step on all ranks. It is at least 1.
    seed, epoch, step : int
        Which batch it is.
    """

    x: Tensor | None
    n_id: Tensor
    e_id: Tensor | None
    edge_attr: Tensor | None
    rows: npt.NDArray[np.uint32]
    seed_time: Tensor | None
    indptr: Tensor
    indices: Tensor
    num_sampled_nodes: list[int]
    num_sampled_edges: list[int]

    def _by_name(self, what: str) -> dict[Any, Any]:
        value = getattr(self, what)
        return {} if value is None else {ONLY_RELATION if what in _OF_RELATIONS else ONLY_TYPE: value}

    @staticmethod
    def _fields(by_name: Mapping[str, dict[Any, Any]]) -> dict[str, Any]:
        return {name: next(iter(value.values()), None) for name, value in by_name.items()}

    @cached_property
    def edge_index(self) -> Tensor:
        """Sources and targets of the in-edges as rows of ``x``, int64, of shape (2, edges)."""
        return _edge_index(self.indptr, self.indices)

    def blocks(self) -> list[Block]:
        """Return the in-edges that each layer reads, the first layer first.

        Each layer reads a prefix of the rows and returns a shorter one, and the last returns the seeds. So nothing is
        computed that the seeds do not need.

        Examples
        --------
        ``for layer, block in zip(layers, batch.blocks()): h = layer(h, block)``
        """
        nodes, edges, indptr, indices = (
            self.num_sampled_nodes,
            self.num_sampled_edges,
            self.indptr,
            self.indices,
        )
        return [
            Block(
                sum(nodes[: hops + 1]),
                targets := sum(nodes[:hops]),
                indptr[: targets + 1],
                indices[: sum(edges[:hops])],
            )
            for hops in range(len(edges), 0, -1)
        ]

    @called_well
    def dropout(self, h: Tensor, share: float, layer: int = 0) -> Tensor:
        """Apply dropout to the first rows of the batch.

        The mask is a function of (seed, epoch, step, layer, vertex, column). So it is the same for any partition
        and any number of ranks, unlike that of ``torch.nn.Dropout``.

        Parameters
        ----------
        h : torch.Tensor
            Values of shape (rows, ...). Row i belongs to node i.
        share : float
            Share of the entries that become 0. 0 outside training.
        layer : int
            Number of the layer.
        """
        return self._dropout(h, share, self.n_id, layer)

    def __repr__(self) -> str:
        return f"<Batch: {self.batch_size} of {self.global_size} seeds, {self.num_nodes} nodes, {self.num_edges} edges>"


@dataclass(frozen=True, eq=False, repr=False)
class TypedBatch(MiniBatch):
    """A mini-batch of a typed graph with the names of PyG's HeteroData. All of its tensors are on one device.

    The nodes of a type are ordered by *levels*, as in :class:`fastpart.loading.Batch`: level 0 are the seeds, and the
    sources of the in-edges that were sampled for level h form level h + 1. The seeds are the first ``batch_size`` rows
    of ``input_type``. Each mapping by type has all types and each by relation all relations, unless it says
    otherwise. Relations are (type of the sources, name, type of the targets).

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
        By relation, int32: the in-edges by target. The sources of target i are ``indices[indptr[i] : indptr[i + 1]]``,
        places among the nodes of their type.
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
    n_id_dict: dict[str, Tensor]
    indptr_dict: dict[EdgeKey, Tensor]
    indices_dict: dict[EdgeKey, Tensor]
    seed_time_dict: dict[str, Tensor]
    e_id_dict: dict[EdgeKey, Tensor]
    edge_attr_dict: dict[EdgeKey, Tensor]
    rows_dict: dict[str, npt.NDArray[np.uint32]]
    num_sampled_nodes_dict: dict[str, list[int]]
    num_sampled_edges_dict: dict[EdgeKey, list[int]]

    def _by_name(self, what: str) -> dict[Any, Any]:
        found: dict[Any, Any] = getattr(self, f"{what}_dict")
        return found

    @staticmethod
    def _fields(by_name: Mapping[str, dict[Any, Any]]) -> dict[str, Any]:
        return {f"{name}_dict": value for name, value in by_name.items()}

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
        return self._dropout(h, share, self.n_id_dict[name], layer)

    def __repr__(self) -> str:
        return (
            f"<TypedBatch: {self.batch_size} of {self.global_size} seeds of {self.input_type}, {self.num_nodes} nodes, "
            f"{self.num_edges} edges>"
        )


if TYPE_CHECKING:

    class LoadedBatch(Batch, TypedBatch):
        """The batch of a loader for type checkers.

        A batch is a :class:`Batch`, or a :class:`TypedBatch` if the graph has types. Checkers do not know the graph, so
        this class has the attributes of both. Nor do they know what the directory holds, so none of them is None.
        """

        x: Tensor
        y: Tensor
        e_id: Tensor
        edge_attr: Tensor
        seed_time: Tensor

        def blocks(self) -> list[Any]: ...  # noqa: D102
        def dropout(self, h: Tensor, share: float, *of: Any) -> Tensor: ...  # noqa: D102


_OF_RELATIONS = ("e_id", "edge_attr", "indptr", "indices", "num_sampled_edges")


def _changed(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Mapping):
        return {key: _changed(each, change) for key, each in value.items()}
    return change(value) if isinstance(value, Tensor) else value


def _edge_index(indptr: Tensor, indices: Tensor) -> Tensor:
    """Return sources and targets of in-edges by target."""
    targets = torch.arange(len(indptr) - 1, device=indptr.device)
    targets = targets.repeat_interleave(indptr.diff(), output_size=len(indices))
    return torch.stack([indices.long(), targets])


def rows_without(
    stay: npt.NDArray[np.bool_], indptr: npt.NDArray[Any], of_hops: Sequence[int]
) -> tuple[npt.NDArray[np.int32], list[int]]:
    """Return ``indptr`` of the in-edges that stay, and how many each hop has."""
    before = np.concatenate(([0], np.cumsum(stay)))
    ends = np.cumsum([0, *of_hops])
    return before[indptr].astype(np.int32), np.diff(before[ends]).tolist()
