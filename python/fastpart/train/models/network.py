"""The base of networks: a stack of layers, each over its own graph; and modules with ``forward(x, edge_index)``."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import ParameterError, arg
from ..graphs.neighbourhood import Neighbourhood, dropped
from ..graphs.rows import Rows
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


class EdgeIndexModel(nn.Module):
    """A module with ``forward(x, edge_index)``, trained over the graphs of fastpart.

    It gets all edges of a batch in every layer, as in PyG without ``trim_to_layer``.

    Attributes
    ----------
    edge_attr : bool
        Whether its third parameter is an ``edge_attr``, which gets the features of the edges. If it has a default,
        there need not be any.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        parameters = inspect.signature(model.forward).parameters
        self.edge_attr = has_edge_attr(model)
        self._needs = self.edge_attr and parameters["edge_attr"].default is inspect.Parameter.empty

    def forward(self, graphs: Sequence[Rows], x: Tensor) -> Tensor:
        """Return the logits of the targets of the last graph."""
        given, edge_attr = [graphs[0].edge_index], graphs[0].edge_attr
        if self.edge_attr and edge_attr is not None:
            given.append(edge_attr.to(x.dtype))
        elif self._needs:
            raise ParameterError(
                f"model: {type(self.model).__name__}.forward takes edge_attr. Save the partition with "
                f"{arg('edge_features')}, and train with sampled, bytegnn, armada, links, sdt or full"
            )
        logits: Tensor = self.model(x, *given)
        return logits[: graphs[-1].num_targets]


def takes_edge_index(model: nn.Module) -> bool:
    """Return whether the second parameter of the module is an ``edge_index``."""
    return list(inspect.signature(model.forward).parameters)[1:2] == ["edge_index"]


def has_edge_attr(model: nn.Module | type[nn.Module]) -> bool:
    """Return whether the third parameter of a module's forward, or of its class, is an ``edge_attr``."""
    names = list(inspect.signature(model.forward).parameters)
    return names[2 + isinstance(model, type) :][:1] == ["edge_attr"]


def takes_edge_attr(network: nn.Module) -> bool:
    """Return whether a built network takes features of edges."""
    return bool(getattr(network, "edge_attr", False))
