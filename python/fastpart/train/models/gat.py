"""Networks with attention.

GAT (Velickovic et al., ICLR 2018, section 2.1), GATv2 (Brody, Alon and Yahav, ICLR 2022, section 3) and the graph
transformer (Shi et al., "Masked Label Prediction: Unified Message Passing Model", IJCAI 2021, section 3.1).
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..graphs.neighbourhood import Neighbourhood, dropped
from ..options import Options
from .network import Network
from .scores import Task

SLOPE = 0.2
"""Slope of the leaky ReLU of the scores."""


class Attention(nn.Module):
    """Multi-head attention of a vertex to its neighbours and itself."""

    def __init__(self, width: int, out: int, last: bool, options: Options) -> None:
        super().__init__()
        self._last, self._drop = last, options.dropout
        self.shape = (options.heads, out)
        self.fc = nn.Linear(width, options.heads * out, bias=False)
        self.attn_l = nn.Parameter(torch.empty(1, *self.shape))
        self.attn_r = nn.Parameter(torch.empty(1, *self.shape))
        self.bias = nn.Parameter(torch.zeros(options.heads * out))
        gain = nn.init.calculate_gain("relu")
        for weight in (self.fc.weight, self.attn_l, self.attn_r):
            nn.init.xavier_normal_(weight, gain=gain)

    def forward(self, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Return one row for each target: the heads concatenated, or their mean in the last layer."""
        values = self.fc(x).unflatten(1, self.shape)
        source = (values * self.attn_l).sum(-1, keepdim=True)
        target = (graph.ends(values) * self.attn_r).sum(-1, keepdim=True)
        h = graph.attend(values, source, target, self._score, self._drop if self.training else 0.0)
        return self._joined(h + self.bias.view(1, *self.shape))

    def _score(self, source: Tensor, target: Tensor) -> Tensor:
        return F.leaky_relu(source + target, SLOPE)

    def _joined(self, h: Tensor) -> Tensor:
        return h.mean(1) if self._last else h.flatten(1)


class AttentionV2(nn.Module):
    """Dynamic attention: the ranking of the neighbours depends on the target.

    Features of edges, if there are any, are a third term of the scores. The loop at a vertex has the mean of its
    in-edges.
    """

    def __init__(self, width: int, out: int, last: bool, options: Options, edge_features: int = 0) -> None:
        super().__init__()
        self._last, self._drop = last, options.dropout
        self.shape = (options.heads, out)
        self.fc_src = nn.Linear(width, options.heads * out)
        self.fc_dst = nn.Linear(width, options.heads * out)
        self.attn = nn.Parameter(torch.empty(1, *self.shape))
        gain = nn.init.calculate_gain("relu")
        for linear in (self.fc_src, self.fc_dst):
            nn.init.xavier_normal_(linear.weight, gain=gain)
            nn.init.zeros_(linear.bias)
        nn.init.xavier_normal_(self.attn, gain=gain)
        self.fc_edge = None
        if edge_features:  # last, so that the other weights are the same without them
            self.fc_edge = nn.Linear(edge_features, options.heads * out, bias=False)
            nn.init.xavier_normal_(self.fc_edge.weight, gain=gain)

    def forward(self, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Return one row for each target: the heads concatenated, or their mean in the last layer."""
        source = self.fc_src(x).unflatten(1, self.shape)
        target = self.fc_dst(graph.ends(x)).unflatten(1, self.shape)
        edges = None
        if self.fc_edge is not None:
            edges = self.fc_edge(graph.edge_rows(x.dtype, loops=True)).unflatten(1, self.shape)

        def score(source: Tensor, target: Tensor) -> Tensor:
            both = source + target
            both = both if edges is None else both + edges
            return (F.leaky_relu(both, SLOPE) * self.attn).sum(-1, keepdim=True)

        h = graph.attend(source, source, target, score, self._drop if self.training else 0.0)
        return h.mean(1) if self._last else h.flatten(1)


class GAT(Network):
    """Neighbours weighted by attention. ``hidden`` is the width of each head."""

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return Attention(width, out, index == options.layers - 1, options)

    def width_of(self, out: int, last: bool, options: Options) -> int:
        """Return the width of all heads."""
        return out if last else out * options.heads

    def width_of_edges(self, index: int) -> int:
        """Return the width of all heads, which each edge weighs."""
        heads, out = self.layers[index].shape
        terms = 3 if self.edge_features else 2
        return terms * int(heads) * int(out) + self.edge_features

    def between(self, h: Tensor, graph: Neighbourhood) -> Tensor:
        """Return the rows after ELU and dropout."""
        return dropped(F.elu(h), self.dropout, graph) if self.training else F.elu(h)


class GATv2(GAT):
    """Dynamic attention: the ranking of the neighbours depends on the target, and on the features of the edge."""

    reads_edges = True

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return AttentionV2(width, out, index == options.layers - 1, options, self.edge_features)


class TransformerAttention(nn.Module):
    """Multi-head attention of a vertex to its neighbours by the product of query and key, and a map of the vertex.

    Features of edges, if there are any, are added to keys and values. The weights are those of PyG's
    ``TransformerConv``.
    """

    def __init__(self, width: int, out: int, last: bool, options: Options, edge_features: int) -> None:
        super().__init__()
        self._last, self._drop = last, options.dropout
        self.shape = (options.heads, out)
        self.query, self.key, self.value = (nn.Linear(width, options.heads * out) for _ in range(3))
        self.edge = nn.Linear(edge_features, options.heads * out, bias=False) if edge_features else None
        self.skip = nn.Linear(width, out if last else options.heads * out)

    def forward(self, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Return one row for each target: the heads concatenated, or their mean in the last layer."""
        query = self.query(graph.ends(x)).unflatten(1, self.shape)
        key, value = (linear(x).unflatten(1, self.shape) for linear in (self.key, self.value))
        edges = None if self.edge is None else self.edge(graph.edge_rows(x.dtype)).unflatten(1, self.shape)

        def score(source: Tensor, target: Tensor) -> Tensor:
            keys = source if edges is None else source + edges
            return (keys * target).sum(-1, keepdim=True) / math.sqrt(self.shape[1])

        drop = self._drop if self.training else 0.0
        h = graph.attend(value, key, query, score, drop, loops=False, of_edges=edges)
        return (h.mean(1) if self._last else h.flatten(1)) + self.skip(graph.targets(x))


class Transformer(GAT):
    """Attention by products of queries and keys. ``hidden`` is the width of each head."""

    reads_edges = True

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return TransformerAttention(width, out, index == options.layers - 1, options, self.edge_features)

    def width_of_edges(self, index: int) -> int:
        """Return the width of all heads of keys and values, and of what edges add to them."""
        heads, out = self.layers[index].shape
        return (3 if self.edge_features else 2) * int(heads) * int(out) + self.edge_features

    def between(self, h: Tensor, graph: Neighbourhood) -> Tensor:
        """Return the rows after ReLU and dropout."""
        return Network.between(self, h, graph)
