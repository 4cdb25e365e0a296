"""One batch: nodes by level, and the in-edges that were sampled between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..core.calls import called_well
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
        counts = self.indptr.diff()
        targets = torch.arange(self.num_targets, device=counts.device)
        targets = targets.repeat_interleave(counts, output_size=self.num_edges)
        return torch.stack([self.indices.long(), targets])


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
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
    y: Tensor | None
    n_id: Tensor
    e_id: Tensor | None
    edge_attr: Tensor | None
    rows: npt.NDArray[np.uint32]
    seed_time: Tensor | None
    input_id: Tensor
    indptr: Tensor
    indices: Tensor
    num_sampled_nodes: list[int]
    num_sampled_edges: list[int]
    batch_size: int
    global_size: int
    seed: int
    epoch: int
    step: int

    @property
    def num_nodes(self) -> int:
        """Number of nodes, seeds included."""
        return len(self.n_id)

    @property
    def num_edges(self) -> int:
        """Number of in-edges."""
        return len(self.indices)

    @cached_property
    def edge_index(self) -> Tensor:
        """Sources and targets of the in-edges as rows of ``x``, int64, of shape (2, edges)."""
        return self._block(0).edge_index

    def blocks(self) -> list[Block]:
        """Return the in-edges that each layer reads, the first layer first.

        Each layer reads a prefix of the rows and returns a shorter one, and the last returns the seeds. So nothing is
        computed that the seeds do not need.

        Examples
        --------
        ``for layer, block in zip(layers, batch.blocks()): h = layer(h, block)``
        """
        return [self._block(layer) for layer in range(len(self.num_sampled_edges))]

    def _block(self, layer: int) -> Block:
        hops = len(self.num_sampled_edges) - layer
        targets = sum(self.num_sampled_nodes[:hops])
        edges = sum(self.num_sampled_edges[:hops])
        sources = targets + self.num_sampled_nodes[hops]
        return Block(sources, targets, self.indptr[: targets + 1], self.indices[:edges])

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
        return dropout(h, share, self.n_id[: len(h)], self.seed, self.epoch, self.step, layer)

    def to(self, device: torch.device | str | int, non_blocking: bool = False) -> Batch:
        """Return the batch on another device."""
        return self._mapped(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Batch:
        """Return the batch in page-locked memory, from which copies to a GPU need not block."""
        return self._mapped(lambda tensor: tensor.pin_memory())

    def _mapped(self, change: Callable[[Tensor], Tensor]) -> Batch:
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{k: change(v) for k, v in tensors.items() if isinstance(v, Tensor)})

    def __repr__(self) -> str:
        return f"<Batch: {self.batch_size} of {self.global_size} seeds, {self.num_nodes} nodes, {self.num_edges} edges>"
