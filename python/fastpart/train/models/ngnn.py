"""NGNN (Song, Ma, Ma and Wu, "Network In Graph Neural Network", 2021, section 3.1) with layers of GraphSAGE."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from ..graphs.neighbourhood import Neighbourhood
from ..options import Options
from .graphsage import SAGE
from .network import Network
from .scores import Task


class DeepSAGE(nn.Module):
    """A layer of GraphSAGE with an additional nonlinear layer inside."""

    takes_means = True

    def __init__(self, width: int, hidden: int, out: int) -> None:
        super().__init__()
        self.convolution = SAGE(width, hidden)
        self.linear = nn.Linear(hidden, out)

    def forward(self, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Return one row for each target."""
        return self.linear(F.relu(self.convolution(graph, x)))


class NGNN(Network):
    """GraphSAGE with deeper layers over the same neighbourhoods."""

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return DeepSAGE(width, options.hidden, out)
