"""What is learned, and how good it was learned."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Task:
    """Classes of vertices: one for each vertex, or any number (``multilabel``).

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

    def losses(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of each vertex: cross entropy, of multi-label tasks the mean over the classes."""
        if self.multilabel:
            return F.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(1)
        return F.cross_entropy(logits, labels, reduction="none")

    def tally(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return float64 counts that may be added up over batches and processes, for :meth:`score`.

        They are: vertices that are right in every class, vertices, true positives, false positives and negatives.
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


def score(tally: Tensor) -> dict[str, float]:
    """Return the accuracy and the micro-F1 of what :meth:`Task.tally` counted; NaN of no vertices.

    The accuracy of a multi-label task is the share of vertices that are right in every class. With one class for each
    vertex, both are equal.
    """
    right, vertices, both, wrong = tally.tolist()
    accuracy = right / vertices if vertices else float("nan")
    f1 = 2 * both / (2 * both + wrong) if both or wrong else float("nan")
    return {"accuracy": accuracy, "f1": f1}
