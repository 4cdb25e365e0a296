"""What a process of full-batch training holds of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from ..neighbourhood import Neighbourhood
from ..scores import Task
from .clock import Clock
from .wire import Wire


@dataclass
class Share:
    """The vertices whose losses and scores are counted in this process, and what their networks see.

    Attributes
    ----------
    task : Task
        What is learned.
    features : torch.Tensor
        One row for each source of the first layer.
    labels : torch.Tensor
        Of the targets of the last layer.
    splits : dict of torch.Tensor
        Labelled targets of the last layer in ``train``, ``val`` and ``test``.
    num_train : int
        Labelled training vertices of the whole graph.
    layers : sequence of Neighbourhood
        One for each layer of the network, in training.
    exact : sequence of Neighbourhood
        The same for scores, which take everything into account.
    wire, clock
        What all of these talk through, and count their seconds with.
    facts : dict
        What the table of the workers says of this one.
    """

    task: Task
    features: Tensor
    labels: Tensor
    splits: dict[str, Tensor]
    num_train: int
    layers: Sequence[Neighbourhood]
    exact: Sequence[Neighbourhood]
    wire: Wire
    clock: Clock
    facts: dict[str, Any] = field(default_factory=dict)

    def begin(self, epoch: int) -> None:
        """Get ready for an epoch of training."""

    def row(self) -> dict[str, Any]:
        """Return what an epoch of training adds to its row; the same everywhere."""
        return {}

    def close(self) -> None:
        """Receive what is still under way."""
