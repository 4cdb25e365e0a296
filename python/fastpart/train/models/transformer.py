"""Graph transformer (Shi et al., "Masked Label Prediction: Unified Message Passing Model", IJCAI 2021, section 3.1)."""

from __future__ import annotations

import math

from torch import Tensor, nn

from ..graphs.neighbourhood import Neighbourhood
from ..options import Options
from .gat import GAT
from .network import Network
from .scores import Task


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
