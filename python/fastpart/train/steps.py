"""Steps of training on a graph in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from .batches import Batch, VertexRows, batches
from .config import Options
from .data import LocalGraph
from .models import NEIGHBOUR, sampling_of
from .scores import Task


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


def losses(task: Task, network: nn.Module, local: LocalGraph, batch: Batch) -> Tensor:
    """Return the sum of the weighted losses of the targets of a batch."""
    inputs = local.features if batch.inputs is None else local.features[_index(batch.inputs)]
    logits = network(batch.graphs, inputs)
    return batch.weighted(task.losses(logits[batch.rows], local.labels[_index(batch.targets)])).sum()


def _index(rows: VertexRows) -> Tensor:
    return torch.from_numpy(rows.astype(np.int64))


def train_epoch(
    task: Task,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    local: LocalGraph,
    options: Options,
    generator: torch.Generator,
) -> tuple[float, float]:
    """Train one epoch. Return the sum of the losses, and what it is divided by."""
    network.train()
    loss, count = 0.0, 0.0
    for batch in batches_of(local, options, generator):
        total = losses(task, network, local, batch)
        optimizer.zero_grad()
        (total / batch.count).backward()
        optimizer.step()
        loss, count = loss + total.item(), count + batch.count
    return loss, count
