"""A batch, and the size of batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..graphs.rows import Rows
from .field import Field, VertexRows

STEPS = 10
"""Default number of batches per epoch for models that train on sampled graphs."""


@dataclass
class Batch:
    """The graphs of the layers, and the outputs that count.

    Attributes
    ----------
    graphs : sequence of Rows
        One for each layer.
    inputs : numpy.ndarray or None
        uint32: vertices of the input rows. None: all.
    rows : torch.Tensor
        Rows of the output that are targets.
    targets : numpy.ndarray
        uint32: vertices of these outputs.
    count : float
        The loss is the sum of the weighted losses of the targets, divided by the sum of the counts, of all processes.
    weights : torch.Tensor or None
        Factors of the losses of the targets. None: 1.
    """

    graphs: Sequence[Rows]
    inputs: VertexRows | None
    rows: Tensor
    targets: VertexRows
    count: float
    weights: Tensor | None = None

    def weighted(self, losses: Tensor) -> Tensor:
        """Return the losses of the targets, weighted."""
        return weighted(losses, self.weights)


def weighted(losses: Tensor, weights: Tensor | None) -> Tensor:
    """Return losses times their factors, if there are any."""
    return losses if weights is None else losses * weights.to(losses)


def size_of_batches(seeds: int, batch_size: int | None) -> int:
    """Return the number of training vertices per step."""
    return batch_size or max(1, -(-seeds // STEPS))


def induced(field: Field, members: VertexRows, layers: int) -> tuple[Batch, npt.NDArray[np.int64]]:
    """Return the batch of the training vertices among some vertices, over the edges between these, and their ids."""
    sample = field.topology.subgraph(members, edge_ids=True)
    rows = np.flatnonzero(field.trained[members])
    targets = members[rows]
    graphs = [field.graph(sample)] * layers
    assert sample.e_id is not None
    return Batch(graphs, members, torch.from_numpy(rows), targets, len(rows)), sample.e_id
