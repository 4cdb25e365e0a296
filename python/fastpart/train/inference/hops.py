"""Vertices of the parts of a process, block by block, and all of their neighbours, hop by hop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch

from ... import _core
from ...loading.fetching import Fetching
from ...loading.row_files import EdgeFeatures, RowFiles
from ...partitions.partition import VertexPartition
from ...partitions.types import edge_keys, type_names
from ..graphs.kernels import CPU
from ..graphs.rows import Rows, TypedRows

Vertices = npt.NDArray[np.int64]

Block = tuple[int, Vertices]
"""A part, and some of its inner vertices by local id. They ascend, also from block to block of a part."""

VertexMask = Callable[[int], npt.NDArray[np.bool_]]
"""Returns the mask of the inner vertices of a part that are wanted."""

PIECE_BYTES = 64 << 20
"""Bytes of a block, about. The limit of the memory does not change blocks, and so no digit of what is computed."""


def piece(size: int) -> int:
    """Return how many things of a size in bytes a block has, about."""
    return PIECE_BYTES // max(size, 1)


class InEdges(Protocol):
    """The inner vertices of a part, or those of one type, and where the in-edges of each begin."""

    @property
    def num_inner(self) -> int: ...  # noqa: D102
    @property
    def indptr(self) -> npt.NDArray[np.int64]: ...  # noqa: D102


class Blocks:
    """Splits the vertices of parts into blocks.

    Parameters
    ----------
    parts : sequence of InEdges
        All parts.
    own : list of int
        Those of this process.
    starts : numpy.ndarray
        The first row of each part.

    Attributes
    ----------
    parts : list of int
        The parts of this process.
    """

    def __init__(
        self, parts: Sequence[InEdges], own: list[int], starts: npt.NDArray[np.integer[Any]]
    ) -> None:
        self._all, self.parts, self._starts = parts, own, starts

    def vertices(self, part: int, wanted: VertexMask | None) -> Vertices:
        """Return the wanted inner vertices of a part. None: all."""
        return np.arange(self._all[part].num_inner) if wanted is None else np.flatnonzero(wanted(part))

    def rows(self, part: int, vertices: Vertices) -> npt.NDArray[np.uint32]:
        """Return the rows of inner vertices of a part."""
        return (self._starts[part] + vertices).astype(np.uint32)

    def degrees(self, part: int, vertices: Vertices) -> Vertices:
        """Return how many in-edges inner vertices of a part have."""
        indptr = self._all[part].indptr
        degrees: Vertices = indptr[vertices + 1] - indptr[vertices]
        return degrees

    def split(
        self, wanted: VertexMask | None, cost: Callable[[Vertices], Vertices], most: int
    ) -> Iterator[Block]:
        """Yield the wanted vertices of this process in blocks that cost about ``most``, given the cost of a degree."""
        for number in self.parts:
            vertices = self.vertices(number, wanted)
            costs = np.cumsum(cost(self.degrees(number, vertices)))
            for block in np.split(vertices, np.flatnonzero(np.diff(costs // most)) + 1):
                if len(block):
                    yield number, block


RowIds = npt.NDArray[np.uint32]


@dataclass(eq=False)
class Hood:
    """Some vertices with all of their neighbours in some hops.

    Attributes
    ----------
    rows : dict of numpy.ndarray
        By type: row of each source among those of the type. The vertices themselves are the first of theirs.
    features : dict of numpy.ndarray or None
        By type: the values of these rows that are here.
    graphs : list
        The in-edges for each layer, the first layer first: :class:`.Rows`, or :class:`.TypedRows` of all relations.
    """

    rows: dict[str, RowIds]
    features: dict[str, npt.NDArray[Any] | None]
    graphs: list[Any]


class Hops:
    """Finds all neighbours of vertices, with their features and those of in-edges.

    Parameters
    ----------
    partition : VertexPartition
        The parts.
    count : int
        Number of hops.
    edge_attr : bool
        Whether the network takes features of in-edges.
    away : sequence of int
        Parts whose files are not here.
    exchange : Fetching, optional
        Messages to processes that have other features of in-edges. Only graphs without types have some.
    """

    def __init__(
        self,
        partition: VertexPartition,
        count: int,
        edge_attr: bool = False,
        away: Sequence[int] = (),
        exchange: Fetching | None = None,
    ) -> None:
        self._names, self._relations = type_names(partition), edge_keys(partition)
        self._topology, self._types = partition._topology, partition._types
        fanouts: Any = [-1] * count if self._types is None else [[-1] * len(self._relations)] * count
        typed = self._types is not None
        ids, rows_of_edges = edge_attr and typed, edge_attr and not typed
        self._sampler: _core.Sampler[Any] = _core.Sampler(
            self._topology, fanouts, types=self._types, merged=True, edge_ids=ids, edge_rows=rows_of_edges
        )
        self._of_relations = EdgeFeatures(partition) if ids else None
        self._exchange, self._of_edges = exchange, None
        if rows_of_edges and partition.parts[0].row_type("edge_features") is not None:
            here = np.ones(partition.k, bool)
            here[list(away)] = False
            rows, coding = (
                RowFiles.of_edges(partition).opened(here),
                partition.parts[0].coding("edge_features"),
            )
            self._of_edges = rows if rows is None or coding is None else rows.decoded(coding.core)

    def sources(self, vertices: RowIds) -> dict[str, RowIds]:
        """Return some vertices and the sources of their in-edges by type, each by its row among those of the type."""
        return self._by_type(self._sampler.sample(vertices).rows)

    def sizes(self, vertices: RowIds) -> tuple[list[int], list[int]]:
        """Return how many nodes and in-edges each hop of some vertices has."""
        sample = self._sampler.sample(vertices)
        nodes, edges = map(self._listed, (sample.num_sampled_nodes, sample.num_sampled_edges))
        return [sum(hop) for hop in zip(*nodes, strict=True)], [sum(hop) for hop in zip(*edges, strict=True)]

    def of(
        self,
        vertices: RowIds,
        features: Mapping[str, _core.Features | None],
        device: torch.device = CPU,
    ) -> Hood:
        """Return some vertices with all of their neighbours, and the features that are here."""
        given: Any = [features.get(name) for name in self._names]
        if self._types is None:
            sample = self._sampler.sample(vertices, features=given[0], edge_features=self._of_edges)
            graphs: list[Any] = self._rows(sample, device).by_layer(sample.num_sampled_nodes)
        else:
            sample = self._sampler.sample(vertices, features=given)
            graphs = self._typed_rows(sample, device).by_layer(self._by_type(sample.num_sampled_nodes))
        return Hood(self._by_type(sample.rows), self._by_type(sample.features), graphs)

    def _rows(self, sample: _core.SampledBatch, device: torch.device) -> Rows:
        edge_attr = sample.edge_features
        if self._exchange is not None and sample.edge_rows is not None:
            edge_attr = self._exchange.complete(sample.edge_rows, edge_attr, self._of_edges)
        return Rows(
            sample.indptr,
            sample.indices,
            lambda: torch.from_numpy(self._topology.degrees_of(sample.rows)),
            torch.from_numpy(sample.n_id),
            sources=len(sample.rows),
            device=device,
            edge_attr=None if edge_attr is None else torch.from_numpy(edge_attr),
        )

    def _typed_rows(self, sample: _core.TypedSampledBatch, device: torch.device) -> TypedRows:
        edge_attr = {} if self._of_relations is None else self._of_relations.of_sample(sample)
        sources = {name: len(ids) for name, ids in zip(self._names, sample.rows, strict=True)}
        relations = {}
        for key, indptr, indices in zip(self._relations, sample.indptr, sample.indices, strict=True):
            rows = torch.from_numpy(edge_attr[key]) if key in edge_attr else None
            relations[key] = Rows(indptr, indices, sources=sources[key[0]], device=device, edge_attr=rows)
        vertices = {
            name: torch.from_numpy(ids).to(device) for name, ids in zip(self._names, sample.n_id, strict=True)
        }
        return TypedRows(sources, sources, relations, vertices)

    def _listed(self, found: Any) -> list[Any]:
        """Return what the core found by type or by relation, also where there is only one."""
        return [found] if self._types is None else found

    def _by_type(self, found: Any) -> dict[str, Any]:
        return dict(zip(self._names, self._listed(found), strict=True))
