"""GAT (Velickovic et al., ICLR 2018, section 2.1) and GATv2 (Brody, Alon and Yahav, ICLR 2022, section 3)."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import dgl
import dgl.nn.pytorch as layers
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..config import Options
from ..scores import Task
from .network import Network

_looped: WeakKeyDictionary[dgl.DGLGraph, dgl.DGLGraph] = WeakKeyDictionary()


def with_loops(graph: dgl.DGLGraph) -> dgl.DGLGraph:
    """Return a block with an edge more from each destination to itself."""
    if graph not in _looped:
        sources, destinations = graph.edges()
        own = torch.arange(graph.num_dst_nodes())
        ends = (torch.cat([sources, own]), torch.cat([destinations, own]))
        _looped[graph] = dgl.create_block(ends, graph.num_src_nodes(), graph.num_dst_nodes())
    return _looped[graph]


class Attention(nn.Module):
    """Attention of a vertex to its neighbours and itself, by several heads."""

    def __init__(self, layer: Any, width: int, out: int, last: bool, options: Options) -> None:
        super().__init__()
        self._last = last
        self.heads = layer(width, out, options.heads, attn_drop=options.dropout, allow_zero_in_degree=True)

    def forward(self, graph: dgl.DGLGraph, x: Tensor) -> Tensor:
        """Return one row for each destination: the heads side by side, in the last layer their mean."""
        h: Tensor = self.heads(with_loops(graph), x)
        return h.mean(1) if self._last else h.flatten(1)


class GAT(Network):
    """Neighbours weighted by attention; ``hidden`` is the width of each head."""

    layer_class: Any = layers.GATConv

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return Attention(self.layer_class, width, out, index == options.layers - 1, options)

    def width_of(self, out: int, last: bool, options: Options) -> int:
        """Return the width of all heads."""
        return out if last else out * options.heads

    def between(self, h: Tensor) -> Tensor:
        """Return the rows after ELU and dropout."""
        return F.dropout(F.elu(h), self.dropout, self.training)


class GATv2(GAT):
    """Attention whose ranking of the neighbours depends on the vertex that asks."""

    layer_class: Any = layers.GATv2Conv
