"""DGL's graphs and blocks as neighbourhoods."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import dgl
import dgl.ops
import torch
import torch.nn.functional as F
from dgl.nn.functional import edge_softmax
from torch import Tensor

from .neighbourhood import Neighbourhood

_looped: WeakKeyDictionary[dgl.DGLGraph, dgl.DGLGraph] = WeakKeyDictionary()


def with_loops(graph: dgl.DGLGraph) -> dgl.DGLGraph:
    """Return a block with an additional loop at each destination."""
    if graph not in _looped:
        sources, destinations = graph.edges()
        own = torch.arange(graph.num_dst_nodes())
        ends = (torch.cat([sources, own]), torch.cat([destinations, own]))
        _looped[graph] = dgl.create_block(ends, graph.num_src_nodes(), graph.num_dst_nodes())
    return _looped[graph]


class OfGraph(Neighbourhood):
    """A graph, a part of one, or a block of a mini-batch. The edges of sampled graphs may have weights."""

    def __init__(self, graph: dgl.DGLGraph) -> None:
        super().__init__()
        self._graph = graph
        self.num_targets = graph.num_dst_nodes()
        self.source_degree, self.target_degree = graph.srcdata["degree"], graph.dstdata["degree"]
        self.vertices = graph.srcdata.get("vertex")

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the in-edges of each target."""
        if not self._graph.num_edges():
            return (
                x.new_zeros(self.num_targets, *x.shape[1:]) + 0 * x.sum()
            )  # keeps the weights in the gradient
        if "weight" in self._graph.edata:
            total: Tensor = dgl.ops.u_mul_e_sum(self._graph, x, self._graph.edata["weight"].to(x.dtype))
            return total / self._graph.in_degrees().clamp(min=1).unsqueeze(1)
        mean: Tensor = dgl.ops.copy_u_mean(self._graph, x)
        return mean

    def attend(
        self, values: Tensor, source: Tensor, target: Tensor, score: Callable[[Tensor], Tensor], drop: float
    ) -> Tensor:
        """Return the sums weighted by attention."""
        looped = with_loops(self._graph)
        if not looped.num_edges():
            return values.new_zeros(self.num_targets, *values.shape[1:]) + 0 * values.sum()
        scores = score(dgl.ops.u_add_v(looped, source, target))
        weights = F.dropout(edge_softmax(looped, scores), drop)
        total: Tensor = dgl.ops.u_mul_e_sum(looped, values, weights)
        return total
