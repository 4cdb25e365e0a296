"""NGNN (Song, Ma, Ma and Wu, "Network In Graph Neural Network", 2021, section 3.1) with layers of GraphSAGE."""

from __future__ import annotations

import dgl
import dgl.nn.pytorch as layers
import torch.nn.functional as F
from torch import Tensor, nn

from ..config import Options
from ..scores import Task
from .network import Network


class Deepened(nn.Module):
    """A layer of GraphSAGE with a nonlinear layer more inside."""

    def __init__(self, width: int, hidden: int, out: int) -> None:
        super().__init__()
        self.convolution = layers.SAGEConv(width, hidden, "mean")
        self.linear = nn.Linear(hidden, out)

    def forward(self, graph: dgl.DGLGraph, x: Tensor) -> Tensor:
        """Return one row for each destination."""
        return self.linear(F.relu(self.convolution(graph, x)))


class NGNN(Network):
    """GraphSAGE, deeper without looking further."""

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return Deepened(width, options.hidden, out)
