"""How DGL numbers the vertices and edges of a part, and where their data go: of a plain graph, or by type."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from ..partitions.part_rows import VertexRows
from ..partitions.parts import VertexPartData
from .common import MASKS, Array, inner_edges_of

_NODES, _EDGES = "_N", "_N:_E:_N"
"""DGL's names of the node type and the edge type of a homogeneous graph."""

Tensors = dict[str, Array]


class Layout:
    """A homogeneous graph: rows and edges are in DGL's order as they are."""

    edge_bytes = vertex_bytes = 0
    """Bytes per edge and vertex of what a typed graph has besides in ``graph.dgl``."""

    def edge_order(self, part: VertexPartData, edges: int) -> Array | None:
        """Return the places of the edges in the order of their new ids. None if it is that of the rows."""
        return None

    def node_tags(self, part: VertexPartData) -> Array | None:
        """Return the type of each inner vertex and each neighbour. None if there is one."""
        return None

    def edge_tags(self, part: VertexPartData, edges: int) -> Array | None:
        """Return the edge type of each edge in the order of the new ids. None if there is one."""
        return None

    def node_data(self, part: VertexPartData) -> Tensors:
        """Return the data of the inner vertices."""
        return _rows_of(_NODES, part)

    def edge_data(self, part: VertexPartData, edges: int) -> Tensors:
        """Return the data of the in-edges of the inner vertices, in the order of the new ids."""
        named = {"feat": part.edge_features, "time": part.edge_times}
        return {f"{_EDGES}/{name}": rows[:edges] for name, rows in named.items() if rows is not None}

    def config(self, vertices: Array, edges: Array) -> dict[str, Any]:
        """Return the entries of the JSON file, from the first new id of each part."""
        return {
            "node_map": {_NODES: [list(pair) for pair in pairwise(vertices.tolist())]},
            "edge_map": {_EDGES: [list(pair) for pair in pairwise(edges.tolist())]},
            "ntypes": {_NODES: 0},
            "etypes": {_EDGES: 0},
        }


class TypedLayout(Layout):
    """Types and relations: new ids ascend by part and type, and by part and edge type."""

    edge_bytes = 8 + 4
    vertex_bytes = 2

    def __init__(self, parts: Iterable[VertexPartData], edge_counts: list[int]) -> None:
        self._vertices, self._edges = [], []
        for part, edges in zip(parts, edge_counts, strict=True):
            self._types, self._edge_types = part.types or (), part.edge_types or ()
            self._vertices.append(part.num_inner_of_type)
            relations = _relations(part)[:edges]
            self._edges.append(np.bincount(relations, minlength=len(self._edge_types)))

    def edge_order(self, part: VertexPartData, edges: int) -> Array:
        """Return the places of the edges by edge type."""
        return np.argsort(_relations(part)[:edges], kind="stable")

    def node_tags(self, part: VertexPartData) -> Array:
        """Return the type of each vertex, int16, as DGL keeps it."""
        counts = [*(part.num_inner_of_type or ()), *(part.num_halo_of_type or ((),))[0]]
        numbers = np.tile(np.arange(len(self._types), dtype=np.int16), 2)
        return np.repeat(numbers, counts)

    def edge_tags(self, part: VertexPartData, edges: int) -> Array:
        """Return the edge type of each edge, int32, as DGL keeps it."""
        return np.repeat(np.arange(len(self._edge_types), dtype=np.int32), self._edges[part.index])

    def node_data(self, part: VertexPartData) -> Tensors:
        """Return the data of each type."""
        found: Tensors = {}
        for each in self._types:
            found |= _rows_of(each.name, part.of_type(each.name))
        return found

    def edge_data(self, part: VertexPartData, edges: int) -> Tensors:
        """Return the data of each edge type."""
        found: Tensors = {}
        for each in self._edge_types:
            relation = part.of_relation(each.name)
            inner = inner_edges_of(relation, edges)
            named = {"feat": relation.edge_features, "time": relation.times}
            name = f"{each.source}:{each.name}:{each.target}"
            found |= {f"{name}/{key}": rows[:inner] for key, rows in named.items() if rows is not None}
        return found

    def config(self, vertices: Array, edges: Array) -> dict[str, Any]:
        """Return the entries of the JSON file."""
        names = [each.name for each in self._types]
        triples = [f"{each.source}:{each.name}:{each.target}" for each in self._edge_types]
        return {
            "node_map": _ranges(names, np.array(self._vertices)),
            "edge_map": _ranges(triples, np.array(self._edges)),
            "ntypes": {name: number for number, name in enumerate(names)},
            "etypes": {name: number for number, name in enumerate(triples)},
        }


def _relations(part: VertexPartData) -> Array:
    assert part.relations is not None
    return part.relations


def _rows_of(name: str, rows: VertexRows) -> Tensors:
    of_nodes: dict[str, Array | None] = {"feat": rows.features, "label": rows.labels}
    of_nodes |= {f"{split}_mask": getattr(rows, split) for split in MASKS}
    of_nodes["time"] = rows.times
    return {f"{name}/{key}": array for key, array in of_nodes.items() if array is not None}


def _ranges(names: list[str], counts: Array) -> dict[str, list[list[int]]]:
    """Return the range of new ids of each name in each part, from the counts by part and name."""
    ends = np.cumsum(counts).reshape(counts.shape)
    starts = ends - counts
    return {name: np.stack([starts[:, at], ends[:, at]], axis=1).tolist() for at, name in enumerate(names)}
