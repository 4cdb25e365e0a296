"""The classification task and its scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Task:
    """Classification of vertices, with one class per vertex or several (``multilabel``).

    Attributes
    ----------
    features, classes : int
        Width of the features, and number of classes.
    multilabel : bool
        Whether labels are float32 rows of zeros and ones rather than one int64 each.
    """

    features: int
    classes: int
    multilabel: bool

    def example(self) -> tuple[Tensor, Tensor]:
        """Return logits and labels of two vertices."""
        logits = torch.zeros(2, self.classes)
        return logits, torch.zeros_like(logits) if self.multilabel else torch.zeros(2, dtype=torch.int64)

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each vertex: cross entropy. For multi-label tasks it is the mean over the classes."""
        if self.multilabel:
            return F.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(1)
        return F.cross_entropy(logits, labels, reduction="none")

    def tally(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return float64 counts for :func:`score`. They can be added up over batches and processes.

        These are the correct vertices, all vertices, true positives, and false positives and negatives together. In a
        multi-label task a vertex is correct only if all its labels are.
        """
        if self.multilabel:
            predicted, true = logits > 0, labels > 0.5
            right = (predicted == true).all(1).sum()
            counts = [right, right.new_tensor(len(true)), (predicted & true).sum(), (predicted != true).sum()]
        else:
            right = (logits.argmax(1) == labels).sum()
            vertices = right.new_tensor(len(labels))
            counts = [right, vertices, right, 2 * (vertices - right)]
        return torch.stack(counts).double()


UNSCORED = dict.fromkeys(("val_accuracy", "val_f1"))
"""The scores of an epoch without validation."""


def scores_of(splits: Sequence[str], tallies: Tensor) -> dict[str, float]:
    """Return accuracy and micro-F1 of each split, as ``val_accuracy`` and ``val_f1`` of ``val``."""
    return {
        f"{split}_{name}": value
        for split, tally in zip(splits, tallies, strict=True)
        for name, value in score(tally).items()
    }


def score(tally: Tensor) -> dict[str, float]:
    """Return accuracy and micro-F1 from the counts of :meth:`Task.tally`, NaN without vertices.

    They are equal for single-label tasks.
    """
    right, vertices, both, wrong = tally.tolist()
    accuracy = right / vertices if vertices else float("nan")
    f1 = 2 * both / (2 * both + wrong) if both or wrong else float("nan")
    return {"accuracy": accuracy, "f1": f1}
