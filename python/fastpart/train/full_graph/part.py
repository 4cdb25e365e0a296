"""The part of the graph that a worker of full-batch training computes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..clock import Clock
from ..kernels import Ids, Kernel
from ..neighbourhood import Neighbourhood
from ..ranks import device
from ..scores import Task
from .wire import Group, NoWire, Wire


@dataclass(frozen=True)
class Tools:
    """The tools of the layers of a process.

    Attributes
    ----------
    wire : Wire
        Messages to the other processes.
    device : torch.device
        Where tensors are.
    clock : Clock
        Counts seconds.
    """

    wire: Wire
    device: torch.device
    clock: Clock = field(default_factory=Clock)

    @classmethod
    def of_group(cls, seconds: float) -> Tools:
        """Return the tools of a process in a group. The processes wait for each other for so many seconds."""
        return cls(Group(seconds), device())

    @classmethod
    def alone(cls) -> Tools:
        """Return the tools of a single process, to try out a model."""
        return cls(NoWire(), torch.device("cpu"))

    def kernel(self, indptr: Ids, indices: Ids, sources: int) -> Kernel:
        """Return the sums over some edges."""
        return Kernel(indptr, indices, sources, self.device)


@dataclass
class WorkerPart:
    """The vertices whose losses and scores this process computes, and the inputs of its network.

    Attributes
    ----------
    task : Task
        The classification task.
    features : torch.Tensor
        One row for each source of the first layer.
    labels : torch.Tensor
        Labels of the targets of the last layer.
    splits : dict of torch.Tensor
        Labelled targets of the last layer in ``train``, ``val`` and ``test``.
    num_train : int
        Labelled training vertices of the whole graph.
    layers : sequence of Neighbourhood
        One for each layer of the network, in training.
    exact : sequence of Neighbourhood
        One for each layer, for scores. They always include all messages.
    tools : Tools
        Tools of the layers.
    facts : dict
        Columns of this worker in the table of workers.
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

    @property
    def own(self) -> int:
        """Number of the vertices that no other worker has. They come first."""
        return len(self.features)

    def begin(self, epoch: int) -> None:
        """Begin an epoch of training."""

    def row(self) -> dict[str, Any]:
        """Return additional columns of an epoch. They are equal in all processes."""
        return {}

    def close(self) -> None:
        """Receive pending messages."""
