"""A batch, and what the ways to make one share."""

from __future__ import annotations

from dataclasses import dataclass

import dgl
import torch
from torch import Tensor

from ..data import LocalGraph

STEPS = 10
"""Batches of an epoch of models that are trained on sampled graphs, unless ``batch_size`` says otherwise."""


@dataclass
class Batch:
    """The graphs of the layers, and which rows count.

    Attributes
    ----------
    graphs : list of dgl.DGLGraph
        One for each layer.
    inputs : torch.Tensor or None
        Local ids of the rows of the features that go in; None: all.
    rows : torch.Tensor
        Rows of the output that are targets.
    targets : torch.Tensor
        Local ids of the targets.
    weights : torch.Tensor or None
        What the losses of the targets are multiplied with; None: 1.
    """

    graphs: list[dgl.DGLGraph]
    inputs: Tensor | None
    rows: Tensor
    targets: Tensor
    weights: Tensor | None = None

    def features(self, local: LocalGraph) -> Tensor:
        """Return the rows that go in."""
        return local.features if self.inputs is None else local.features[self.inputs]

    def weighted(self, losses: Tensor) -> Tensor:
        """Return the losses of the targets, weighted."""
        return losses if self.weights is None else losses * self.weights


def size_of_batches(seeds: int, batch_size: int | None) -> int:
    """Return how many training vertices a step is to have."""
    return batch_size or max(1, -(-seeds // STEPS))


def seed_dgl(generator: torch.Generator) -> None:
    """Seed DGL, whose samplers know no generators."""
    dgl.seed(int(torch.randint(2**31 - 1, (), generator=generator)))


def subgraph(graph: dgl.DGLGraph, vertices: Tensor) -> dgl.DGLGraph:
    """Return what the vertices induce, with their data; local ids are in ``dgl.NID``, those of edges in ``dgl.EID``."""
    return dgl.node_subgraph(graph, vertices)
