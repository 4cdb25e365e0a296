"""GIN (Xu, Hu, Leskovec and Jegelka, "How Powerful are Graph Neural Networks?", ICLR 2019, section 4.1).

With features of edges it is GINE (Hu et al., "Strategies for Pre-training Graph Neural Networks", ICLR 2020,
section 5.1).
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..graphs.neighbourhood import Neighbourhood
from ..options import Options
from .network import Network
from .scores import Task


class Isomorphism(nn.Module):
    """The sum of the neighbours, and the vertex itself with a learned weight, through two linear maps.

    Between them each row is normalised, because sums grow with the degree. The paper normalises the batch instead, but
    then the result for a vertex would depend on the other vertices in the process.
    """

    takes_means = True

    def __init__(self, width: int, hidden: int, out: int) -> None:
        super().__init__()
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.inner = nn.Linear(width, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.outer = nn.Linear(hidden, out)

    def forward(self, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Return one row for each target."""
        neighbours = graph.once(x, lambda: graph.sum(x))
        h = self.inner((1 + self.epsilon) * graph.targets(x) + neighbours)
        return self.outer(F.relu(self.norm(h)))


class EdgeIsomorphism(Isomorphism):
    """As :class:`Isomorphism`, over the sum of ReLU(neighbour + linear map of the features of the edge)."""

    takes_means = False

    def __init__(self, width: int, hidden: int, out: int, edge_features: int) -> None:
        super().__init__(width, hidden, out)
        self.edge = nn.Linear(edge_features, width)

    def forward(self, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Return one row for each target."""
        edges = self.edge(graph.edge_rows(x.dtype))
        neighbours = graph.sum_of_messages(x, lambda sources: F.relu(sources + edges))
        h = self.inner((1 + self.epsilon) * graph.targets(x) + neighbours)
        return self.outer(F.relu(self.norm(h)))


class GIN(Network):
    """Sums of neighbours."""

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return Isomorphism(width, options.hidden, out)


class GINE(GIN):
    """Sums of neighbours with the features of the edges to them. Without features of edges it is :class:`GIN`."""

    reads_edges = True

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        if not self.edge_features:
            return super().make_layer(index, width, out, task, options)
        return EdgeIsomorphism(width, options.hidden, out, self.edge_features)

    def width_of_edges(self, index: int) -> int:
        """Return the width of the messages, and of what edges add to them."""
        if not self.edge_features:
            return 0
        return 2 * int(self.layers[index].inner.in_features) + self.edge_features
