"""GraphSAINT (Zeng et al., ICLR 2020, section 3)."""

from __future__ import annotations

import dgl
import dgl.nn.pytorch as layers
from torch import Tensor, nn

from ..config import Options
from ..scores import Task
from .network import SAINT, Network


class Aggregation(nn.Module):
    """A layer of GraphSAGE whose mean weighs the edges of a sampled graph, so that it is right in expectation."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.convolution = layers.SAGEConv(width, out, "mean")

    def forward(self, graph: dgl.DGLGraph, x: Tensor) -> Tensor:
        """Return one row for each destination."""
        return self.convolution(graph, x, graph.edata.get("weight"))


class GraphSAINT(Network):
    """GraphSAGE, trained on graphs that random walks sample."""

    sampling = SAINT

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return Aggregation(width, out)
