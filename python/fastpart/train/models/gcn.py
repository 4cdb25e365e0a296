"""GCN (Kipf and Welling, ICLR 2017, section 2)."""

from __future__ import annotations

import dgl
import dgl.nn.pytorch as layers
from torch import Tensor, nn

from ..config import Options
from ..scores import Task
from .network import Network


class Propagation(nn.Module):
    """Rows times D^-1/2 (A + I) D^-1/2, where D holds the in-degrees in the whole graph, plus 1.

    The sum over the neighbours is their mean times the in-degree: right in expectation with a sample of them, exact
    with all of them, wherever their own edges lie.
    """

    def __init__(self) -> None:
        super().__init__()
        self._mean = layers.GraphConv(1, 1, norm="right", weight=False, bias=False, allow_zero_in_degree=True)

    def forward(self, graph: dgl.DGLGraph, x: Tensor) -> Tensor:
        """Return one row for each destination."""
        degree = graph.dstdata["degree"].to(x.dtype).unsqueeze(1)
        scaled = x * (graph.srcdata["degree"].to(x.dtype).unsqueeze(1) + 1) ** -0.5
        neighbours = self._mean(graph, scaled) * degree
        return (neighbours + scaled[: graph.num_dst_nodes()]) * (degree + 1) ** -0.5


class Convolution(nn.Module):
    """A linear map, then a propagation."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, out, bias=False)
        self.propagation = Propagation()
        self.bias = nn.Parameter(self.linear.weight.new_zeros(out))
        nn.init.xavier_uniform_(self.linear.weight)

    def forward(self, graph: dgl.DGLGraph, x: Tensor) -> Tensor:
        """Return one row for each destination."""
        return self.propagation(graph, self.linear(x)) + self.bias


class GCN(Network):
    """Neighbours and the vertex itself, weighted by the roots of their degrees, through one linear map."""

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return Convolution(width, out)
