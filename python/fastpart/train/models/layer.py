"""The base of layers. It turns any graph into a neighbourhood."""

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
        raise TypeError(f"{type(self).__name__}: a layer must define the method over")


def around(graph: Any) -> Neighbourhood:
    """Return a neighbourhood as it is, or that of a graph of DGL."""
    if isinstance(graph, Neighbourhood):
        return graph
    from ..dgl_graphs import OfGraph  # here, because DGL may be missing

    return OfGraph(graph)
