"""What networks have in common: a stack of layers, each over its own graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from ..config import Options
from ..neighbourhood import Neighbourhood, dropped
from ..scores import Task
from .layer import around

NEIGHBOUR, CLUSTER, SAINT = "neighbour", "cluster", "saint"
"""Kinds of batches."""


class Network(nn.Module):
    """A stack of graph layers with ReLU and dropout between them.

    Subclasses say what a layer is. ``forward`` takes one graph for each layer: a DGL block of a mini-batch, whose first
    source vertices are its destinations; the same graph each time; or a
    :class:`~fastpart.train.neighbourhood.Neighbourhood` of a method without DGL. Graphs of DGL have
    ``srcdata["degree"]`` and ``dstdata["degree"]``, the in-degrees in the whole graph.

    A model of your own may be any ``nn.Module`` with this ``forward``; with ``layers`` and ``layer`` it can be
    evaluated one layer, and one part, at a time.

    Attributes
    ----------
    sampling : str
        The kind of batches it is trained on: ``neighbour``, ``cluster`` or ``saint``; see
        :mod:`fastpart.train.batches`.
    """

    sampling = NEIGHBOUR

    def __init__(self, task: Task, options: Options) -> None:
        super().__init__()
        self.dropout = options.dropout
        self.layers = nn.ModuleList()
        width = task.features
        for index in range(options.layers):
            last = index == options.layers - 1
            out = task.classes if last else options.hidden
            self.layers.append(self.make_layer(index, width, out, task, options))
            width = self.width_of(out, last, options)

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return the layer ``index`` that takes rows of ``width``; those of the last are ``out`` wide."""
        raise TypeError(f"{type(self).__name__}: a network says what its layers are, by make_layer")

    def width_of(self, out: int, last: bool, options: Options) -> int:
        """Return how wide the rows are that a layer gives."""
        return out

    def layer(self, index: int, graph: Any, x: Tensor) -> Tensor:
        """Return what the layer ``index`` makes of the rows of the sources: one row for each destination."""
        h: Tensor = self.layers[index](graph, x)
        return h if index == len(self.layers) - 1 else self.between(h, around(graph))

    def between(self, h: Tensor, graph: Neighbourhood) -> Tensor:
        """Return what the next layer gets of the rows that a layer gave over a graph."""
        return dropped(F.relu(h), self.dropout, graph) if self.training else F.relu(h)

    def forward(self, graphs: Sequence[Any], x: Tensor) -> Tensor:
        """Return the logits of the destinations of the last graph."""
        for index, graph in enumerate(graphs):
            x = self.layer(index, graph, x)
        return x
