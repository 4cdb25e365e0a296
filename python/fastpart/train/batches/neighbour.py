"""All vertices at once, or training vertices with some of their neighbours (Hamilton et al., NeurIPS 2017, 3.1)."""

from __future__ import annotations

from collections.abc import Iterator

import dgl
import torch

from ..config import Options
from ..data import LocalGraph
from .batch import Batch, seed_dgl


def batches(local: LocalGraph, options: Options, generator: torch.Generator) -> Iterator[Batch]:
    """Yield the batches of one epoch."""
    seeds = local.splits["train"]
    if not len(seeds):
        return
    if options.batch_size is None:
        yield Batch([local.graph] * options.layers, None, seeds, seeds)
        return
    sampler = dgl.dataloading.NeighborSampler(list(options.fanouts))
    degree = local.graph.ndata["degree"]
    seed_dgl(generator)
    for some in torch.randperm(len(seeds), generator=generator).split(options.batch_size):
        inputs, targets, blocks = sampler.sample_blocks(local.graph, seeds[some])
        for block in blocks:
            block.srcdata["degree"] = degree[block.srcdata[dgl.NID]]
            block.dstdata["degree"] = degree[block.dstdata[dgl.NID]]
        yield Batch(blocks, inputs, torch.arange(len(targets)), targets)
