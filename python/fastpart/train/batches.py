"""What one step of training sees: the whole local graph, or a sample of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import dgl
import torch
from torch import Tensor

from .config import Options
from .data import LocalGraph


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
    """

    graphs: list[dgl.DGLGraph]
    inputs: Tensor | None
    rows: Tensor
    targets: Tensor

    def features(self, local: LocalGraph) -> Tensor:
        """Return the rows that go in."""
        return local.features if self.inputs is None else local.features[self.inputs]


def batches(local: LocalGraph, options: Options, generator: torch.Generator) -> Iterator[Batch]:
    """Give the batches of one epoch over the training vertices of ``local``."""
    seeds = local.splits["train"]
    if options.batch_size is None:
        yield Batch([local.graph] * options.layers, None, seeds, seeds)
        return
    # DGL's own generator cannot be put back, but it can be seeded.
    dgl.seed(int(torch.randint(2**31 - 1, (1,), generator=generator)))
    sampler = dgl.dataloading.NeighborSampler(list(options.fanouts))
    for some in torch.randperm(len(seeds), generator=generator).split(options.batch_size):
        inputs, targets, blocks = sampler.sample_blocks(local.graph, seeds[some])
        for block in blocks:
            block.srcdata["degree"] = local.graph.ndata["degree"][block.srcdata[dgl.NID]]
            block.dstdata["degree"] = local.graph.ndata["degree"][block.dstdata[dgl.NID]]
        yield Batch(blocks, inputs, torch.arange(len(targets)), targets)
