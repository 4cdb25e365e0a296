"""Steps of training on a graph in memory."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .batches import Batch, batches
from .config import Options
from .data import LocalGraph
from .scores import Task


def losses(task: Task, network: nn.Module, local: LocalGraph, batch: Batch) -> Tensor:
    """Return the weighted loss of each target of a batch."""
    logits = network(batch.graphs, batch.features(local))
    return batch.weighted(task.losses(logits[batch.rows], local.labels[batch.targets]))


def train_epoch(
    task: Task,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    local: LocalGraph,
    options: Options,
    generator: torch.Generator,
) -> tuple[float, int]:
    """Train one epoch. Return the sum of the losses and the number of targets."""
    network.train()
    loss, seen = 0.0, 0
    for batch in batches(local, options, generator):
        of_each = losses(task, network, local, batch)
        optimizer.zero_grad()
        of_each.mean().backward()
        optimizer.step()
        loss += of_each.detach().sum().item()
        seen += len(batch.targets)
    return loss, seen
