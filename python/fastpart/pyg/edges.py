"""The in-edges of a partition directory as a whole, as PyG's loaders ask for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import EdgeAttr, GraphStore
from torch_geometric.data.graph_store import EdgeLayout

from ..errors import FastpartError
from ..graphs.types import EdgeType
from ..partitions.partition import VertexPartition
from ..partitions.types import EdgeKey, edge_types, in_edges_of, key_of, rows_of_relation, vertex_types

Ids = npt.NDArray[np.int64]


class InEdges:
    """The in-edges of one relation, or of its reverse. Ids count within the types of its ends.

    Attributes
    ----------
    size : tuple of int
        Numbers of vertices that sources and targets may be.
    """

    def __init__(self, partition: VertexPartition, of: EdgeType) -> None:
        types = {each.name: each.n for each in vertex_types(partition)}
        self._partition, self._type = partition, of
        self.size = types[of.source], types[of.target]

    def by_target(self) -> tuple[Ids, Ids]:
        """Return ``indptr`` of the targets, and the source of each in-edge."""
        degrees = np.zeros(self.size[1], np.int64)
        for part in self._partition.parts:
            part._check_assignment(self._partition.assignment, self._partition.loads[part.index])
            ids, counts, _ = in_edges_of(part, rows_of_relation(part, self._type.name))
            degrees[ids] = counts
        indptr = np.concatenate(([0], np.cumsum(degrees)))
        sources = np.empty(indptr[-1], np.int64)
        for part in self._partition.parts:
            ids, counts, found = in_edges_of(part, rows_of_relation(part, self._type.name))
            shift = np.repeat(indptr[ids] - (np.cumsum(counts) - counts), counts)
            sources[np.arange(len(found)) + shift] = found
        return indptr, sources


class PartitionEdges(GraphStore):
    """The in-edges of a partition directory, read-only. See :func:`fastpart.pyg.graph_store`.

    ``edges`` has those of each relation, or only None in a graph without types.
    """

    def __init__(self, edges: Mapping[EdgeKey | None, InEdges]) -> None:
        super().__init__()
        self._edges = dict(edges)

    def _get_edge_index(self, attr: EdgeAttr) -> tuple[Tensor, Tensor] | None:
        edges = self._edges.get(None if None in self._edges else attr.edge_type)
        if edges is None or attr.layout == EdgeLayout.CSR:
            return None
        indptr, sources = edges.by_target()
        csc = attr.layout == EdgeLayout.CSC
        ends = indptr if csc else np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        return torch.from_numpy(sources), torch.from_numpy(ends)

    def get_all_edge_attrs(self) -> list[EdgeAttr]:
        """Return the layouts that there are: COO and CSC, both sorted by target."""
        return [
            EdgeAttr(key, layout, is_sorted=True, size=edges.size)
            for key, edges in self._edges.items()
            for layout in ("coo", "csc")
        ]

    def _put_edge_index(self, edge_index: Any, edge_attr: EdgeAttr) -> bool:
        raise FastpartError("graph_store: a partition directory is read-only")

    def _remove_edge_index(self, edge_attr: EdgeAttr) -> bool:
        raise FastpartError("graph_store: a partition directory is read-only")

    def __repr__(self) -> str:
        if None in self._edges:
            return f"PartitionEdges({self._edges[None].size[1]} vertices)"
        return f"PartitionEdges({', '.join(map(str, self._edges))})"


def edges_by_relation(partition: VertexPartition) -> dict[EdgeKey | None, InEdges]:
    """Return the in-edges of each relation."""
    return {key_of(each) if each.name else None: InEdges(partition, each) for each in edge_types(partition)}
