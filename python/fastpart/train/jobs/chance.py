"""The loss of guessing: that of a network that gives all vertices, or all pairs, the same output."""

from __future__ import annotations

import math
from typing import Any

import torch

from ..data import AnyDataset


def of_pairs(negatives: int) -> float:
    """Return the cross entropy of guessing which of ``1 + negatives`` pairs are edges, if one of them is."""
    return _entropy(torch.tensor([1.0, negatives], dtype=torch.float64))


def of_classes(dataset: AnyDataset[Any]) -> float | None:
    """Return the cross entropy of guessing the classes of the training vertices by their frequencies.

    It is at most the logarithm of the number of classes. In a multi-label task it is the mean over the classes. None if
    the task has no classes, or all training vertices are of the same one, which leaves nothing to learn.
    """
    task = dataset.task
    if task.regression:
        return None
    counts, vertices = torch.zeros(task.classes, dtype=torch.float64), 0
    for part in dataset.partition.parts:
        labels = dataset.labels(part)[dataset.splits(part)["train"]]
        vertices += len(labels)
        counts += labels.sum(0) if task.multilabel else torch.bincount(labels, minlength=task.classes)
    if not task.multilabel:
        return _entropy(counts) or None
    each = [_entropy(torch.stack([count, vertices - count])) for count in counts]
    return math.fsum(each) / len(each) or None


def _entropy(counts: torch.Tensor) -> float:
    """Return the entropy of a distribution, in nats."""
    return float(torch.special.entr(counts / counts.sum()).sum())
