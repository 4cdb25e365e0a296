"""A batch, and helpers of the kinds of batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from ..data import LocalGraph
from ..rows import Rows

STEPS = 10
"""Default number of batches per epoch for models that train on sampled graphs."""


@dataclass
class Batch:
    """The graphs of the layers, and the rows that count.

    Attributes
    ----------
    graphs : sequence of Rows
        One for each layer.
    inputs : torch.Tensor or None
        Local ids of the input rows. None: all.
    rows : torch.Tensor
        Rows of the output that are targets.
    targets : torch.Tensor
        Local ids of the targets.
    weights : torch.Tensor or None
        Factors of the losses of the targets. None: 1.
    """

    graphs: Sequence[Rows]
    inputs: Tensor | None
    rows: Tensor
    targets: Tensor
    weights: Tensor | None = None

    def features(self, local: LocalGraph) -> Tensor:
        """Return the input rows."""
        return local.features if self.inputs is None else local.features[self.inputs]

    def weighted(self, losses: Tensor) -> Tensor:
        """Return the losses of the targets, weighted."""
        return losses if self.weights is None else losses * self.weights


def size_of_batches(seeds: int, batch_size: int | None) -> int:
    """Return the number of training vertices per step."""
    return batch_size or max(1, -(-seeds // STEPS))


def random_of(generator: torch.Generator) -> np.random.Generator:
    """Return random numbers of numpy that continue those of torch."""
    return np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
