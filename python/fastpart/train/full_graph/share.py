"""What a process of full-batch training holds of the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..neighbourhood import Neighbourhood
from ..scores import Task
from .clock import Clock
from .kernels import MakeKernel, kernel
from .wire import Group, NoWire, Wire, device


@dataclass(frozen=True)
class Tools:
    """What the layers of a process work with.

    Attributes
    ----------
    wire : Wire
        To the other processes.
    make : callable
        Makes kernels.
    device : torch.device
        Where tensors are.
    clock : Clock
        What seconds are counted with.
    """

    wire: Wire
    make: MakeKernel
    device: torch.device
    clock: Clock = field(default_factory=Clock)

    @classmethod
    def of_group(cls, aggregation: str) -> Tools:
        """Return those of a process in a group."""
        where = device()
        return cls(Group(), kernel(aggregation, where), where)

    @classmethod
    def alone(cls) -> Tools:
        """Return those of a process without others, to try something out."""
        where = torch.device("cpu")
        return cls(NoWire(), kernel("torch", where), where)


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
    tools : Tools
        What all of these work with.
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
    tools: Tools
    facts: dict[str, Any] = field(default_factory=dict)

    def begin(self, epoch: int) -> None:
        """Get ready for an epoch of training."""

    def row(self) -> dict[str, Any]:
        """Return what an epoch of training adds to its row; the same everywhere."""
        return {}

    def close(self) -> None:
        """Receive what is still under way."""
