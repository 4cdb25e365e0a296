"""Training vertices with some of their neighbours (Hamilton et al., NeurIPS 2017, 3.1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from ... import _core
from ..options import Options
from .batch import Batch
from .field import Field


def batches(field: Field, options: Options, seed: int) -> Iterator[Batch]:
    """Yield the batches of one epoch."""
    edge_rows = field.edge_attr is not None
    sampler = _core.Sampler(field.topology, list(options.fanouts), seed=seed, edge_rows=edge_rows)
    steps = list(field.dealt(options.batch_size or len(field.seeds), np.random.default_rng(seed)))
    offsets = np.cumsum([0, *map(len, steps)])
    sampled = sampler.batches(np.concatenate(steps), offsets)
    try:
        for targets, sample in zip(steps, sampled, strict=True):
            graphs = field.graph(sample).by_layer(sample.num_sampled_nodes)
            count = len(targets)
            yield Batch(graphs, sample.rows, torch.arange(count), targets, count)
    finally:
        sampled.close()
