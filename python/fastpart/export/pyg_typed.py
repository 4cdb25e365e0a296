"""Parts of a typed graph for PyG: as ``HeteroData``, and in the layout of ``torch_geometric.distributed``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ..graphs.types import EdgeType
from ..partitions.part_rows import RelationData, TypeData
from ..partitions.parts import VertexPartData
from .by_id import save, scratch, tensors
from .common import MASKS, Array, Source, in_edges, inner_edges_of


class TypedWriter:
    """Writes the parts, and after the last part the parts of all vertices and edges.

    Ids count from 0 in each type of vertices, and in each relation: see :meth:`EdgeType.ids_within`.
    """

    def __init__(self, torch: Any, source: Source, inside: Path) -> None:
        self._torch, self._source, self._inside = torch, source, inside
        first = source.partition.parts[0]
        self._types, self._edge_types = first.types or (), first.edge_types or ()
        self._owners = {each.name: scratch(inside, each.num_ids) for each in self._edge_types}

    def write(self, part: VertexPartData) -> None:
        """Write one part."""
        folder = self._inside / f"part_{part.index}"
        folder.mkdir()
        edges = in_edges(part)
        views = [_Type(self._source, part, part.of_type(each.name)) for each in self._types]
        relations = [_Relation(part, part.of_relation(each.name), edges, views) for each in self._edge_types]
        data: dict[Any, Any] = {view.name: self._tensors(view.data()) for view in views}
        data |= {each.key: self._tensors(each.data()) for each in relations}
        save(self._torch, folder / "data.pt", data)
        graph = {each.key: self._tensors(each.by_id()) | {"size": each.size} for each in relations}
        save(self._torch, folder / "graph.pt", graph)
        rows = {view.name: self._nested(view.rows()) for view in views if view.of.num_inner}
        save(self._torch, folder / "node_feats.pt", rows)
        of_edges = {each.key: self._nested(found) for each in relations if (found := each.rows())}
        save(self._torch, folder / "edge_feats.pt", of_edges)
        for each in relations:
            self._owners[each.name][each.ids] = part.index

    def _tensors(self, arrays: dict[str, Any]) -> dict[str, Any]:
        numbers = {name: value for name, value in arrays.items() if isinstance(value, int)}
        return tensors(self._torch, {name: arrays[name] for name in arrays if name not in numbers}) | numbers

    def _nested(self, found: dict[str, Any]) -> dict[str, Any]:
        feats = self._tensors(found["feats"])
        return self._tensors({name: found[name] for name in found if name != "feats"}) | {"feats": feats}

    def finish(self) -> dict[str, Any]:
        """Write the part of each vertex and each edge, and return what ``META.json`` says of the types."""
        assignment = self._source.partition.assignment.astype(np.int64)
        maps = {
            "node_map": {
                each.name: assignment[slice(each.range.start, each.range.stop)] for each in self._types
            },
            "edge_map": {"__".join(_key(each)): self._owners[each.name] for each in self._edge_types},
        }
        for folder, arrays in maps.items():
            (self._inside / folder).mkdir()
            for name, array in arrays.items():
                save(self._torch, self._inside / folder / f"{name}.pt", self._torch.from_numpy(array))
        return {
            "node_types": [each.name for each in self._types],
            "edge_types": [list(_key(each)) for each in self._edge_types],
            "node_offset": [each.first for each in self._types],
            "is_hetero": True,
        }


def _key(of: EdgeType) -> tuple[str, str, str]:
    return of.source, of.name, of.target


class _Type:
    """The vertices of a type in a part: the inner ones, then the neighbours of inner vertices."""

    def __init__(self, source: Source, part: VertexPartData, of: TypeData) -> None:
        self._source, self._part, self.of, self.name = source, part, of, of.type.name
        (start, stop), (self._first, self._end), *_ = of.spans
        self.span, self.halo_span = (start, stop), (self._first, self._end)

    @property
    def ids(self) -> Array:
        """Ids in the type."""
        return (
            np.concatenate([self.of.inner, self._part.vertices[self._first : self._end]]) - self.of.type.first
        )

    def rows(self) -> dict[str, Any]:
        """Return the rows of the inner vertices by id."""
        ids = self.of.inner - self.of.type.first
        found: dict[str, Any] = {"global_id": ids, "id": ids}
        if self.of.times is not None:
            found["time"] = self.of.times
        return found | {"feats": {} if self.of.features is None else {"x": self.of.features}}

    def data(self) -> dict[str, Any]:
        """Return what ``HeteroData`` has of the type. The masks name inner vertices only."""
        found: dict[str, Any] = {"n_id": self.ids, "num_nodes": len(self.ids), "num_inner": self.of.num_inner}
        named: dict[str, Callable[[TypeData], Array | None]] = {
            "x": lambda view: view.features,
            "y": lambda view: view.labels,
            "time": lambda view: view.times,
        }
        for name, rows_of in named.items():
            inner = rows_of(self.of)
            if inner is not None:
                found[name] = np.concatenate([inner, self._halo_rows(rows_of, inner)])
        for name in MASKS:
            mask = getattr(self.of, name)
            if mask is not None:
                found[f"{name}_mask"] = np.concatenate([mask, np.zeros(self._end - self._first, np.bool_)])
        return found

    def _halo_rows(self, rows_of: Callable[[TypeData], Array | None], inner: Array) -> Array:
        """Return the rows of neighbours from the parts that own them."""
        halo = self._part.vertices[self._first : self._end]
        owners = self._source.partition.assignment[halo]
        rows = np.empty((len(halo), *inner.shape[1:]), inner.dtype)
        for owner in np.flatnonzero(np.bincount(owners)).tolist():
            view = self._source.partition.parts[owner].of_type(self.name)
            stored, those = rows_of(view), owners == owner
            assert stored is not None
            rows[those] = stored[np.searchsorted(view.inner, halo[those])]
        return rows


class _Relation:
    """The in-edges of the inner vertices of a part that are of one edge type."""

    def __init__(self, part: VertexPartData, of: RelationData, edges: int, types: list[_Type]) -> None:
        self._count, self._of = inner_edges_of(of, edges), of
        self.key, self.name = _key(of.type), of.type.name
        ends = {view.name: view for view in types}
        self._ends = ends[of.type.source], ends[of.type.target]
        self.size = tuple(view.of.type.n for view in self._ends)
        sources, targets, ids = of.in_edges(local=True)
        self._local = [
            _within(view, part, local[: self._count])
            for view, local in zip(self._ends, (sources, targets), strict=True)
        ]
        self.ids = of.type.ids_within(ids[: self._count], int(part._manifest["m"]))

    def data(self) -> dict[str, Any]:
        """Return what ``HeteroData`` has of the edge type."""
        found = {"edge_index": np.stack(self._local).astype(np.int64), "e_id": self.ids}
        named = {"edge_attr": self._of.edge_features, "time": self._of.times}
        return found | {name: rows[: self._count] for name, rows in named.items() if rows is not None}

    def by_id(self) -> dict[str, Any]:
        """Return the edges by the ids of the types."""
        row, col = (view.ids[local] for view, local in zip(self._ends, self._local, strict=True))
        return {"row": row, "col": col, "edge_id": self.ids}

    def rows(self) -> dict[str, Any]:
        """Return the rows of the edges by id, if there are any."""
        features, times = self._of.edge_features, self._of.times
        if not self._count or (features is None and times is None):
            return {}
        found: dict[str, Any] = {"global_id": self.ids, "feats": {}}
        if features is not None:
            found["feats"] = {"edge_attr": features[: self._count]}
        return found | ({} if times is None else {"edge_time": times[: self._count]})


def _within(view: _Type, part: VertexPartData, local: Array) -> Array:
    """Return the places in a type of vertices of the part, of which the neighbours lie behind the inner ones."""
    (start, stop), (first, end) = view.span, view.halo_span
    inner = (local >= start) & (local < stop)
    if not np.all(inner | (local >= first) & (local < end)):
        raise part._damaged("relations", "edges whose ends are of the types of their relations")
    return np.where(inner, local - start, local - first + stop - start)
