"""GCN (Kipf and Welling, ICLR 2017, section 2), and SGC, which has its propagations alone.

SGC: Wu et al., "Simplifying Graph Convolutional Networks", ICML 2019, section 2.2.
"""

from __future__ import annotations

from torch import Tensor, nn

from ..graphs.neighbourhood import Neighbourhood
from ..options import Options
from .network import Network
from .scores import Task


class Propagation(nn.Module):
    """Rows times D^-1/2 (A + I) D^-1/2, where D holds the in-degrees in the whole graph, plus 1.

    It is exact with all neighbours, also over parts, and unbiased with a sample of them.
    """

    takes_propagated = True

    def forward(self, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Return one row for each target."""
        return graph.once(x, lambda: graph.propagated(x))


class Convolution(nn.Module):
    """A linear map and a propagation. The one that makes rows shorter comes first."""

    takes_propagated = True

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, out, bias=False)
        self.propagation = Propagation()
        self.bias = nn.Parameter(self.linear.weight.new_zeros(out))
        nn.init.xavier_uniform_(self.linear.weight)

    def forward(self, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Return one row for each target."""
        if graph.remembers or self.linear.in_features <= self.linear.out_features:
            return self.linear(self.propagation(graph, x)) + self.bias
        return self.propagation(graph, self.linear(x)) + self.bias


class GCN(Network):
    """Neighbours and the vertex itself, weighted by the inverse roots of their degrees, through one linear map."""

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return Convolution(width, out)


class SGC(Network):
    """One propagation of the features per layer, and one linear map. ``hidden`` has no effect."""

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one propagation, the last with the linear map."""
        return Convolution(task.features, out) if index == options.layers - 1 else Propagation()

    def between(self, h: Tensor, graph: object) -> Tensor:
        """Return the rows unchanged. There is no nonlinearity between propagations."""
        return h
