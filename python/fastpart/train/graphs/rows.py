"""Rows of an adjacency in memory as a neighbourhood: a whole graph, a part with its halo, or a mini-batch.

:class:`Rows` are the in-edges of a graph without types, or of one relation. :class:`TypedRows` are the in-edges of all
relations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NoReturn, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import ParameterError
from ...loading import Batch, TypedBatch
from ...partitions.types import ONLY_TYPE, EdgeKey
from .kernels import CPU, Ids, Kernel, with_loops
from .neighbourhood import NO_EDGE_FEATURES, Neighbourhood, Score, dropped_by, inverse_roots

Module = TypeVar("Module")

_TAKES_MORE = (
    "model: a layer with takes_means = True may take the mean or the sum of the rows that it gets, as they are, and "
    "nothing else of the neighbours. Leave takes_means out"
)

_TAKES_OTHERS = (
    "model: a layer with takes_propagated = True may take graph.propagated(x) of the rows that it gets, as they are, "
    "and nothing else of the neighbours. Leave takes_propagated out"
)


class Means(Neighbourhood):
    """Vertices with the means of the rows of their neighbours, without these rows: for layers that take nothing else.

    Parameters
    ----------
    x : torch.Tensor
        Rows of the vertices.
    means : torch.Tensor
        Means over all in-edges of each.
    degree : torch.Tensor
        Number of these in-edges, int64.
    """

    remembers = True
    _refusal = _TAKES_MORE

    def __init__(self, x: Tensor, means: Tensor, degree: Tensor) -> None:
        super().__init__()
        self.num_targets, self.source_degree = len(x), degree
        self.target_degree = degree
        self._x, self._means = x, means

    def mean(self, x: Tensor) -> Tensor:
        """Return the means, which are known of these rows only."""
        if x is not self._x:
            raise ParameterError(self._refusal)
        return self._means

    def attend(self, *_: Any, **__: Any) -> NoReturn:
        """Raise an error: attention needs each row."""
        raise ParameterError(self._refusal)

    def sum_of_messages(self, *_: Any) -> NoReturn:
        """Raise an error: messages need each row."""
        raise ParameterError(self._refusal)


class ScaledMeans(Means):
    """As :class:`Means`, of the rows times the inverse roots of their degrees plus 1."""

    _refusal = _TAKES_OTHERS

    def mean(self, x: Tensor) -> Tensor:
        """Raise an error: the means of the rows as they are need each row."""
        raise ParameterError(self._refusal)

    def propagated(self, x: Tensor) -> Tensor:
        """Return the propagated rows, which are known of these rows only."""
        root = inverse_roots(self.target_degree, x.dtype)
        neighbours = super().mean(x) * self.target_degree.to(x.dtype).unsqueeze(1)
        return (neighbours + x * root) * root


class Rows(Neighbourhood):
    """The in-edges of the first vertices, the targets. They may be the in-edges of one relation.

    The sources of a relation may be of another type than its targets. Then the first sources are not the targets.

    Parameters
    ----------
    indptr, indices : numpy.ndarray
        Where the in-edges of each target begin, and the source of each in-edge. Integers.
    degree : torch.Tensor or callable, optional
        In-degree of each source in the whole graph, int64, or what returns it. Few models need it, and none over types.
    sources : int, optional
        Number of sources. Default: that of the degrees.
    vertices : torch.Tensor, optional
        Global id of each source, int64.
    weights : torch.Tensor, optional
        Factors of the edges in means, float32. Default: 1.
    edge_attr : torch.Tensor, optional
        Features of the in-edges, one row for each.
    """

    def __init__(
        self,
        indptr: Ids,
        indices: Ids,
        degree: Tensor | Callable[[], Tensor] | None = None,
        vertices: Tensor | None = None,
        weights: Tensor | None = None,
        sources: int | None = None,
        device: torch.device = CPU,
        edge_attr: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.indptr, self.indices, self.weights = indptr, indices, weights
        self.num_targets, self.num_edges = len(indptr) - 1, len(indices)
        self.num_sources = len(degree) if isinstance(degree, Tensor) else sources or 0
        self.vertices, self.edge_attr = (None if x is None else x.to(device) for x in (vertices, edge_attr))
        self._degree, self._device = degree, device
        self.kernel = Kernel(indptr, indices, self.num_sources, device, weights)

    @cached_property
    def source_degree(self) -> Tensor:
        """In-degree of each source in the whole graph, int64."""
        assert self._degree is not None
        degree = self._degree if isinstance(self._degree, Tensor) else self._degree()
        return degree.to(self._device)

    @property
    def target_degree(self) -> Tensor:
        """In-degree of each target in the whole graph, int64."""
        return self.source_degree[: self.num_targets]

    def first(self, targets: int, sources: int | None = None) -> Rows:
        """Return the rows of the first targets. They need no more than the first ``sources``."""
        end = int(self.indptr[targets])
        weights = None if self.weights is None else self.weights[:end]
        vertices = None if self.vertices is None else self.vertices[:sources]
        return Rows(
            self.indptr[: targets + 1],
            self.indices[:end],
            lambda: self.source_degree[:sources],
            vertices,
            weights,
            self.num_sources if sources is None else sources,
            self._device,
            None if self.edge_attr is None else self.edge_attr[:end],
        )

    def by_layer(self, levels: Sequence[int]) -> list[Rows]:
        """Return one neighbourhood for each layer of a network. The targets of the last one are the first level.

        ``levels`` has the number of sources of each level. The in-edges of a level end at it and begin at the next.
        """
        sizes = list(accumulate(levels))
        return [self.first(targets, sources) for targets, sources in reversed(list(pairwise(sizes)))]

    def with_weights(self, weights: Tensor) -> Rows:
        """Return the same rows with factors of the edges."""
        return Rows(
            self.indptr,
            self.indices,
            self.source_degree,
            self.vertices,
            weights,
            device=self._device,
            edge_attr=self.edge_attr,
        )

    @cached_property
    def edge_index(self) -> Tensor:
        """Source and target of each in-edge, int64 of shape (2, edges), as the layers of PyG take them."""
        targets = np.repeat(np.arange(self.num_targets), np.diff(self.indptr))
        ends = np.stack([self.indices.astype(np.int64), targets])
        return torch.from_numpy(ends).to(self._device)

    @cached_property
    def _counts(self) -> Tensor:
        counts = torch.from_numpy(np.diff(self.indptr).astype(np.int64))
        return counts.clamp(min=1).unsqueeze(1).to(self._device)

    @cached_property
    def _looped(self) -> Kernel:
        rows = with_loops(self.indptr, self.indices, self.num_targets)
        return Kernel(*rows, self.num_sources, self._device)

    def edge_rows(self, dtype: torch.dtype, *, loops: bool = False) -> Tensor:
        """Return the features of the in-edges, and with ``loops`` of a loop behind the in-edges of each target."""
        if self.edge_attr is None:
            raise ParameterError(NO_EDGE_FEATURES)
        rows = self.edge_attr.to(dtype).reshape(-1, math.prod(self.edge_attr.shape[1:]))
        if not loops:
            return rows
        at = torch.from_numpy(self.indptr[1:].astype(np.int64) + np.arange(self.num_targets))
        looped = rows.new_empty((len(rows) + self.num_targets, rows.shape[1]))
        is_loop = torch.zeros(len(looped), dtype=torch.bool)
        is_loop[at] = True
        looped[is_loop.to(self._device)] = self.kernel.total(rows) / self._counts.to(dtype)
        looped[~is_loop.to(self._device)] = rows
        return looped

    def sum_of_messages(self, x: Tensor, message: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the mean of the messages of the in-edges here, times the in-degree in the whole graph."""
        mean = self.kernel.total(message(self.kernel.of_sources(x))) / self._counts.to(x.dtype)
        return mean * self.target_degree.to(x.dtype).unsqueeze(1)

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the in-edges of each target."""
        return self.kernel.summed(x) / self._counts.to(x.dtype)

    def attend(
        self,
        values: Tensor,
        source: Tensor,
        target: Tensor,
        score: Score,
        drop: float,
        *,
        loops: bool = True,
        of_edges: Tensor | None = None,
    ) -> Tensor:
        """Return the sums weighted by attention."""
        kernel = self._looped if loops else self.kernel
        shares = kernel.softmax(score(kernel.of_sources(source), kernel.at(target)))
        return kernel.weighted(values, self._dropped(shares, drop, kernel), of_edges)

    def _dropped(self, shares: Tensor, drop: float, kernel: Kernel) -> Tensor:
        """Apply dropout to the rows of the edges. The choice depends on the ids of their ends, not on their place."""
        if not drop or self.vertices is None:
            return F.dropout(shares, drop)
        return dropped_by(shares, drop, kernel.pair_ids(self.vertices, self.targets(self.vertices)))


@dataclass(frozen=True, eq=False)
class TypedRows:
    """A graph for one layer over types. The layer reads rows of the sources and returns rows of the targets, by type.

    The targets of a type are the first of its sources. Every mapping has all types, or all relations.

    Attributes
    ----------
    num_targets, num_sources : mapping of int
        By type.
    relations : mapping of Rows
        By (type of the sources, name, type of the targets).
    vertices : mapping of torch.Tensor
        By type: id of each source in the graph, int64.
    """

    num_targets: Mapping[str, int]
    num_sources: Mapping[str, int]
    relations: Mapping[EdgeKey, Rows]
    vertices: Mapping[str, Tensor]

    def first(self, targets: Mapping[str, int], sources: Mapping[str, int]) -> TypedRows:
        """Return the rows of the first targets of each type. They need no more than the first ``sources``."""
        relations = {
            key: rows.first(targets[key[2]], sources[key[0]]) for key, rows in self.relations.items()
        }
        vertices = {name: ids[: sources[name]] for name, ids in self.vertices.items()}
        return TypedRows(targets, sources, relations, vertices)

    def by_layer(self, levels: Mapping[str, Sequence[int]]) -> list[TypedRows]:
        """Return the rows for each layer of a network, as :meth:`Rows.by_layer` does for the levels of each type."""
        sizes = {name: list(accumulate(counts)) for name, counts in levels.items()}
        hops = [dict(zip(sizes, of_hop, strict=True)) for of_hop in zip(*sizes.values(), strict=True)]
        return [self.first(targets, sources) for targets, sources in reversed(list(pairwise(hops)))]

    def read(self, of_relations: Iterable[tuple[EdgeKey, Module]]) -> Iterator[tuple[EdgeKey, Module]]:
        """Yield the relations that a layer has to read, with its module of each: the relations with in-edges here.

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


def layers_of(
    batch: Batch | TypedBatch, device: torch.device = CPU, degree: Callable[[], Tensor] | None = None
) -> list[Any]:
    """Return the in-edges of a batch for each layer of a network, the first layer first.

    They are :class:`TypedRows` in a graph with types, otherwise :class:`Rows`, whose ``degree`` is found if a model
    asks for it.
    """
    if isinstance(batch, Batch):
        ends = batch.indptr.numpy(), batch.indices.numpy()
        whole = Rows(
            *ends, degree, batch.n_id, sources=batch.num_nodes, device=device, edge_attr=batch.edge_attr
        )
        return whole.by_layer(batch.num_sampled_nodes)
    sources = {name: len(ids) for name, ids in batch.n_id_dict.items()}
    relations = {
        key: Rows(
            batch.indptr_dict[key].numpy(),
            indices.numpy(),
            sources=sources[key[0]],
            device=device,
            edge_attr=batch.edge_attr_dict.get(key),
        )
        for key, indices in batch.indices_dict.items()
    }
    vertices = {name: ids.to(device) for name, ids in batch.n_id_dict.items()}
    return TypedRows(sources, sources, relations, vertices).by_layer(batch.num_sampled_nodes_dict)


def alone(x: Mapping[str, Any]) -> Any:
    """Return rows by type as networks take them: in a graph without types, those of the only one."""
    return x.get(ONLY_TYPE, x)
