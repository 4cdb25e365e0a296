"""All vertices at once, or training vertices with some of their neighbours (Hamilton et al., NeurIPS 2017, 3.1)."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from ..config import Options
from ..data import LocalGraph
from ..sampling import neighbours
from .batch import Batch, random_of


def batches(local: LocalGraph, options: Options, generator: torch.Generator) -> Iterator[Batch]:
    """Yield the batches of one epoch."""
    seeds = local.splits["train"]
    if not len(seeds):
        return
    if options.batch_size is None:
        yield Batch([local.graph] * options.layers, None, seeds, seeds)
        return
    random = random_of(generator)
    for some in torch.randperm(len(seeds), generator=generator).split(options.batch_size):
        targets = seeds[some]
        graphs, inputs = neighbours(local.graph, targets.numpy(), options.fanouts, random)
        yield Batch(graphs, torch.from_numpy(inputs), torch.arange(len(targets)), targets)
