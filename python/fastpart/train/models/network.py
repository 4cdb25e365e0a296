"""The base of networks: a stack of layers, each over its own graph."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from ..graphs.neighbourhood import Neighbourhood, dropped
from ..options import Options
from .categories import Categories
from .scores import Task

NEIGHBOUR, CLUSTER, SAINT = "neighbour", "cluster", "saint"
"""Kinds of batches."""


class Network(nn.Module):
    """A stack of graph layers with ReLU and dropout between them.

    Subclasses define a layer. ``forward`` takes one :class:`.Neighbourhood` for each layer: the same each
    time, or those of a mini-batch, where the targets of a layer are the sources of the next.

    Your own model may be any ``nn.Module`` with this ``forward``. With ``layers`` and ``layer`` it can be evaluated one
    layer and one part at a time.

    Attributes
    ----------
    sampling : str
        The kind of its batches: ``neighbour``, ``cluster`` or ``saint``. See ``fastpart.train.learning.batches``.
    reads_edges : bool
        Whether its layers take features of edges, if there are any.
    edge_features : int
        Width of the features of edges that it takes.
    edge_attr : bool
        Whether it takes any.
    categories : torch.nn.Module or None
        Puts learned rows in place of codes of categories before the first layer, if the features have any.
    """

    sampling = NEIGHBOUR
    reads_edges = False

    def __init__(self, task: Task, options: Options) -> None:
        super().__init__()
        self.dropout = options.dropout
        self.edge_features = task.edge_features if self.reads_edges else 0
        self.edge_attr = self.edge_features > 0
        self.categories: Categories | None = None
        self.layers = nn.ModuleList()
        width = task.features
        for index in range(options.layers):
            last = index == options.layers - 1
            out = task.classes if last else options.hidden
            self.layers.append(self.make_layer(index, width, out, task, options))
            width = self.width_of(out, last, options)

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return the layer ``index`` for rows of ``width``. The last layer returns rows of width ``out``."""
        raise TypeError(f"{type(self).__name__}: a network must define the method make_layer")

    def width_of(self, out: int, last: bool, options: Options) -> int:
        """Return the output width of a layer."""
        return out

    def takes_means(self, index: int) -> bool:
        """Return whether the layer ``index`` needs no more of the neighbours than the mean of the rows that it gets."""
        return getattr(self.layers[index], "takes_means", False) and self._takes_rows(index)

    def takes_propagated(self, index: int) -> bool:
        """Return whether the layer ``index`` needs no more of the neighbours than the propagated rows that it gets."""
        return getattr(self.layers[index], "takes_propagated", False) and self._takes_rows(index)

    def _takes_rows(self, index: int) -> bool:
        """Return whether the layer ``index`` gets rows as they are, and not learned rows in place of codes."""
        return type(self).layer is Network.layer and (index > 0 or self.categories is None)

    def layer(self, index: int, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Apply the layer ``index`` to the rows of the sources, and return one row for each target."""
        if index == 0 and self.categories is not None:
            x = self.categories(x)
        h: Tensor = self.layers[index](graph, x)
        return h if index == len(self.layers) - 1 else self.between(h, graph)

    def width_of_edges(self, index: int) -> int:
        """Return how many numbers the layer ``index`` computes for each in-edge, beside the rows of its sources."""
        return 0

    def between(self, h: Tensor, graph: Neighbourhood) -> Tensor:
        """Return the input of the next layer, given the output of a layer over a graph."""
        return dropped(F.relu(h), self.dropout, graph) if self.training else F.relu(h)

    def forward(self, graphs: Sequence[Neighbourhood], x: Tensor) -> Tensor:
        """Return the logits of the targets of the last graph."""
        for index, graph in enumerate(graphs):
            x = self.layer(index, graph, x)
        return x
