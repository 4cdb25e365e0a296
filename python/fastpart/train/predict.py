"""Exact logits and scores of a network on a whole graph, with all neighbours."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .data import LocalGraph
from .scores import Task, score


@torch.no_grad()
def logits(network: nn.Module, local: LocalGraph, layers: int) -> Tensor:
    """Return the logits of all vertices of a graph in memory."""
    network.eval()
    return network([local.graph] * layers, local.features)


def scores(task: Task, logits: Tensor, local: LocalGraph, split: str) -> dict[str, float]:
    """Return the accuracy and the micro-F1 over a split, as ``val_accuracy`` and ``val_f1`` of ``val``."""
    ids = local.splits[split]
    tally = task.tally(logits[ids], local.labels[ids])
    return {f"{split}_{name}": value for name, value in score(tally).items()}
