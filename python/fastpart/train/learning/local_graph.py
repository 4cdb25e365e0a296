"""A graph in memory to train on: the whole graph, or a part with its halo."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ... import _core
from ...partitions.partition import VertexPartition
from ...partitions.parts import VertexPartData
from ...partitions.types import EdgeKey, edge_keys, in_edges_of, of_relation, rows_of_type, vertex_types
from ..graphs.kernels import CPU
from ..graphs.rows import Rows, TypedRows
from .batches import Field

Ids = npt.NDArray[np.int64]


@dataclass
class LocalGraph:
    """A graph. Its first ``num_inner`` vertices are trained on, the others are their halo.

    Attributes
    ----------
    graph : Rows or TypedRows
        The in-edges of all vertices whose neighbours are known. The other vertices, if there are any, have none.
    features : torch.Tensor or dict of torch.Tensor
        float32, one row per vertex. Over types, the rows of each type.
    labels : torch.Tensor
        Labels of the inner vertices: int64 of shape (num_inner,), or float32 of shape (num_inner, classes). Over types,
        these and all below are of the type that has labels.
    splits : dict of torch.Tensor
        Local ids of the labelled inner vertices of ``train``, ``val`` and ``test``.
    vertices : numpy.ndarray
        Global id of each vertex.
    device : torch.device
        Where they are.
    cache : dict
        Data that the batches computed about the graph. It survives when the part is loaded again.
    """

    graph: Any
    features: Any
    labels: Tensor
    splits: dict[str, Tensor]
    vertices: Ids
    num_inner: int
    device: torch.device = CPU
    cache: dict[Any, Any] = field(default_factory=dict)

    def inner(self) -> Rows:
        """Return the in-edges of the inner vertices, of a graph without types. They are the targets."""
        rows: Rows = self.graph.first(self.num_inner)
        return rows

    @cached_property
    def field(self) -> Field:
        """Where batches are sampled, in a graph without types."""
        graph = self.graph
        return Field(
            _core.Topology.in_memory(
                np.ascontiguousarray(self.vertices, np.int64),
                np.ascontiguousarray(graph.indptr, np.int64),
                np.ascontiguousarray(graph.indices, np.int32),
            ),
            self.splits["train"].numpy().astype(np.uint32),
            lambda rows: graph.source_degree[torch.from_numpy(rows.astype(np.int64))],
            slice(0, graph.num_targets),
            len(graph.indices),
            device=self.device,
            edge_attr=graph.edge_attr,
            cache=self.cache,
        )


def graph_of(
    indptr: Ids,
    indices: npt.NDArray[Any],
    degree: Ids,
    vertices: Ids,
    device: torch.device,
    edge_attr: Tensor | None,
) -> Rows:
    """Return the graph of the given rows. Vertices beyond them have no in-edges."""
    padded = np.full(len(vertices) + 1, indptr[-1], np.int64)
    padded[: len(indptr)] = indptr
    return Rows(
        padded,
        np.array(indices, np.int32),
        torch.from_numpy(np.array(degree)),
        torch.from_numpy(np.array(vertices)),
        device=device,
        edge_attr=edge_attr,
    )


def typed_graph_of(part: VertexPartData, keys: Sequence[EdgeKey], device: torch.device) -> TypedRows:
    """Return the in-edges of all vertices of a part by relation. The inner vertices of a type come before its halo."""
    vertices = np.asarray(part.vertices)
    local, places = dict[str, Ids](), np.empty(len(vertices), np.int64)
    for each in part.types or ():
        ids = local[each.name] = np.flatnonzero((vertices >= each.first) & (vertices < each.range.stop))
        places[ids] = np.arange(len(ids))
    known = np.repeat(np.arange(part.num_rows), np.diff(part.indptr))
    relations = {}
    for key in keys:
        relation = part.of_relation(key[1])
        counts = np.bincount(places[known[relation.edges]], minlength=len(local[key[2]]))
        relations[key] = Rows(
            np.concatenate(([0], np.cumsum(counts))),
            places[part.indices[relation.edges]].astype(np.int32),
            sources=len(local[key[0]]),
            device=device,
            edge_attr=_rows(relation.edge_features, relation.num_edges),
        )
    counted = {name: len(ids) for name, ids in local.items()}
    ids_of = {name: torch.from_numpy(vertices[ids]).to(device) for name, ids in local.items()}
    return TypedRows(counted, counted, relations, ids_of)


def whole_typed_graph(partition: VertexPartition, device: torch.device) -> TypedRows:
    """Return the in-edges of all vertices by relation. The vertices of a type are in the order of their ids."""
    ranges = {each.name: each.range for each in vertex_types(partition)}
    relations = {}
    for key in edge_keys(partition):
        of_parts = of_relation(partition, key[1])
        found = [in_edges_of(*each) for each in zip(partition.parts, of_parts, strict=True)]
        targets = np.concatenate([each[0] for each in found])
        indptr, sources, places = in_order(targets, [(counts, ends) for _, counts, ends in found])
        pieces = [_rows(of.edge_features, of.num_edges) for of in of_parts if of.num_of_inner]
        inner = [of.num_of_inner for of in of_parts if of.num_of_inner]
        attributes = [rows[:count] for rows, count in zip(pieces, inner, strict=True) if rows is not None]
        relations[key] = Rows(
            indptr,
            sources.astype(np.int32),
            sources=len(ranges[key[0]]),
            device=device,
            edge_attr=torch.cat(attributes)[torch.from_numpy(places)] if attributes else None,
        )
    sizes = {name: len(ids) for name, ids in ranges.items()}
    vertices = {name: torch.arange(ids.start, ids.stop).to(device) for name, ids in ranges.items()}
    return TypedRows(sizes, sizes, relations, vertices)


def in_order(order: Ids, pieces: list[tuple[Ids, Ids]]) -> tuple[Ids, Ids, Ids]:
    """Return rows sorted by ascending vertex, and the places of their items.

    The rows of all pieces together belong to the vertices ``order``.
    """
    counts = np.concatenate([counts for counts, _ in pieces])
    starts = np.concatenate(([0], np.cumsum(counts)))
    row_of = np.argsort(order)
    indptr = np.concatenate(([0], np.cumsum(counts[row_of])))
    places = np.arange(indptr[-1]) + np.repeat(starts[row_of] - indptr[:-1], counts[row_of])
    return indptr, np.concatenate([indices for _, indices in pieces])[places], places


def _rows(rows: npt.NDArray[Any] | None, count: int) -> Tensor | None:
    """Return features of edges as rows of float32."""
    return None if rows is None else torch.from_numpy(np.array(rows, np.float32).reshape(count, -1))


def features_of(parts: Sequence[VertexPartData], part: VertexPartData, name: str, width: int) -> Tensor:
    """Return the features of the vertices of a type in a part: of its inner vertices, then of its halo.

    Rows of the halo are read from the other parts, unless they were saved with this one.
    """
    data = rows_of_type(part, name)
    features = np.empty((data.num_inner + data.num_halo, width), np.float32)
    features[: data.num_inner] = data.features
    halo = features[data.num_inner :]
    if data.halo_features is not None:
        halo[:] = data.halo_features
        return torch.from_numpy(features)
    there = np.asarray(part.vertices[part.num_inner :])
    ids = np.flatnonzero(np.isin(there, data.halo)) if name else np.arange(part.num_halo)
    for owner in np.unique(part.halo_parts[ids]):
        those = np.flatnonzero(part.halo_parts[ids] == owner)
        of_owner = rows_of_type(parts[int(owner)], name)
        halo[those] = of_owner.features_of(part.halo_rows[ids[those]] - of_owner.first_inner)
    return torch.from_numpy(features)
