"""Steps of training on a graph in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ..batches import Batch, VertexRows, batches
from ..local_graph import LocalGraph
from ..models import NEIGHBOUR, sampling_of
from ..options import Options
from .learner import Learner


def batches_of(local: LocalGraph, options: Options, generator: torch.Generator) -> Iterator[Batch]:
    """Yield the batches of one epoch over a graph in memory. Each has at least one target.

    The same state of ``generator`` and number of threads give the same batches.
    """
    seeds = local.splits["train"]
    if not len(seeds):
        return
    if options.batch_size is None and sampling_of(options.model) == NEIGHBOUR:
        rows = seeds.numpy().astype(np.uint32)
        yield Batch([local.graph] * options.layers, None, seeds, rows, len(seeds))
        return
    seed = int(torch.randint(2**62, (), generator=generator))
    yield from (batch for batch in batches(local.field, options, seed) if len(batch.targets))


def losses(learner: Learner, local: LocalGraph, batch: Batch) -> tuple[Tensor, float]:
    """Return the sum of the weighted losses of the targets of a batch, and what it is divided by."""
    inputs = local.features if batch.inputs is None else local.features[_index(batch.inputs)]
    logits, labels = learner.outputs(batch.graphs, inputs), local.labels[_index(batch.targets)]
    weights = learner.criterion.weights(labels)
    count = batch.count if weights is None else batch.weighted(weights).sum().item()
    return batch.weighted(learner.criterion.losses(logits[batch.rows], labels)).sum(), count


def _index(rows: VertexRows) -> Tensor:
    return torch.from_numpy(rows.astype(np.int64))


def train_epoch(
    learner: Learner, local: LocalGraph, options: Options, generator: torch.Generator
) -> tuple[float, float]:
    """Train one epoch. Return the sum of the losses, and what it is divided by."""
    learner.network.train()
    loss, count = 0.0, 0.0
    for batch in batches_of(local, options, generator):
        total, divisor = losses(learner, local, batch)
        learner.optimizer.zero_grad()
        (total / divisor).backward()
        learner.step(total.item() / divisor)
        loss, count = loss + total.item(), count + divisor
    return loss, count
