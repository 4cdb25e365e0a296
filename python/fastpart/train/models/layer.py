"""What layers have in common: they see a graph as a neighbourhood."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ..neighbourhood import Neighbourhood


class Layer(nn.Module):
    """A graph layer: ``forward(graph, x)`` takes a graph of DGL, or any neighbourhood."""

    def forward(self, graph: Any, x: Tensor) -> Tensor:
        """Return one row for each target, given one for each source."""
        return self.over(around(graph), x)

    def over(self, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Return one row for each target, given one for each source."""
        raise TypeError(f"{type(self).__name__}: a layer says what it computes, by over")


def around(graph: Any) -> Neighbourhood:
    """Return the neighbourhood that a graph is, or that a graph of DGL makes."""
    if isinstance(graph, Neighbourhood):
        return graph
    from ..dgl_graphs import OfGraph  # of those who have DGL

    return OfGraph(graph)
