"""How DGL numbers the vertices and edges of a part, and where their data go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..graphs.types import EdgeType
from ..partitions.part_rows import VertexRows
from ..partitions.parts import VertexPartData
from ..partitions.types import key_of
from .common import MASKS, Array

_NODES, _EDGES = "_N", "_N:_E:_N"
"""DGL's names of the node type and the edge type of a homogeneous graph."""

Tensors = dict[str, Array]


class Layout:
    """New ids ascend by part and type, and by part and edge type. DGL names the one type of a plain graph ``_N``.

    Attributes
    ----------
    edge_bytes, vertex_bytes : int
        Bytes per edge and vertex of what a graph with types has besides in ``graph.dgl``.
    """

    def __init__(self, parts: Iterable[VertexPartData]) -> None:
        self._vertices, self._edges = [], []
        for part in parts:
            self._typed = part.types is not None
            self._vertices.append([rows.num_inner for rows in part._by_type])
            self._edges.append([relation.num_of_inner for relation in part._by_relation])
        self._names = [rows.type.name or _NODES for rows in part._by_type]
        self._triples = [_triple(relation.type) for relation in part._by_relation]
        self.edge_bytes, self.vertex_bytes = (8 + 4, 2) if self._typed else (0, 0)

    def edge_order(self, part: VertexPartData, edges: int) -> Array | None:
        """Return the places of the edges by edge type, the order of their new ids. None if it is that of the rows."""
        return None if part.relations is None else np.argsort(part.relations[:edges], kind="stable")

    def node_tags(self, part: VertexPartData) -> Array | None:
        """Return the type of each inner vertex and each neighbour, int16, as DGL keeps it. None if there is one."""
        if not self._typed:
            return None
        counts = [
            stop - start for hop in (0, 1) for rows in part._by_type for start, stop in [rows.spans[hop]]
        ]
        return np.repeat(np.tile(np.arange(len(self._names), dtype=np.int16), 2), counts)

    def edge_tags(self, part: VertexPartData) -> Array | None:
        """Return the edge type of each edge in the order of the new ids, int32, as in DGL. None if there is one."""
        if not self._typed:
            return None
        return np.repeat(np.arange(len(self._triples), dtype=np.int32), self._edges[part.index])

    def node_data(self, part: VertexPartData) -> Tensors:
        """Return the data of the inner vertices of each type."""
        found: Tensors = {}
        for name, rows in zip(self._names, part._by_type, strict=True):
            found |= _rows_of(name, rows)
        return found

    def edge_data(self, part: VertexPartData) -> Tensors:
        """Return the data of the in-edges of the inner vertices of each edge type, in the order of the new ids."""
        found: Tensors = {}
        for name, relation in zip(self._triples, part._by_relation, strict=True):
            named, count = {"feat": relation.edge_features, "time": relation.times}, relation.num_of_inner
            found |= {f"{name}/{key}": rows[:count] for key, rows in named.items() if rows is not None}
        return found

    def config(self) -> dict[str, Any]:
        """Return the entries of the JSON file."""
        return {
            "node_map": _ranges(self._names, np.array(self._vertices)),
            "edge_map": _ranges(self._triples, np.array(self._edges)),
            "ntypes": {name: number for number, name in enumerate(self._names)},
            "etypes": {name: number for number, name in enumerate(self._triples)},
        }


def _triple(of: EdgeType) -> str:
    return ":".join(key_of(of)) if of.name else _EDGES


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
