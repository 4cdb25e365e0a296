"""The part of the graph that a worker computes on, its tools, and what workers send each other about vertices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from ....partitions.part_files import Ids, LocalIds
from ...data.dataset import SPLITS, AnyDataset
from ...graphs.kernels import CPU
from ...graphs.neighbourhood import Neighbourhood
from ...memory import Need
from ...models.scores import Task
from ...ranks import Clock, device
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
        return cls(NoWire(), CPU)


@dataclass
class Part(ABC):
    """A part in memory. Its own vertices, whose losses and scores it computes, come first.

    Attributes
    ----------
    num_own : int
        Vertices that no other part has as its own.
    vertices, degree : torch.Tensor
        Global id, and in-degree in the whole graph, of the vertices with rows here, int64.
    indptr, indices : numpy.ndarray
        Where the in-edges of each of them begin, and their sources, int64 and int32.
    features : torch.Tensor
        float32, one row for each of them.
    labels : torch.Tensor
        Labels of the own vertices.
    splits : dict of torch.Tensor
        Labelled own vertices of ``train``, ``val`` and ``test``.
    """

    num_own: int
    vertices: Tensor
    degree: Tensor
    indptr: Ids
    indices: LocalIds
    features: Tensor
    labels: Tensor
    splits: dict[str, Tensor]

    @classmethod
    def load(cls, dataset: AnyDataset[Any], index: int, device: torch.device = CPU) -> Self:
        """Return a part of the dataset, with tensors on a device."""
        stored = dataset.partition.parts[index]
        own = dataset.own(stored)
        num_own = int(own.sum())
        order = np.argsort(~own, kind="stable")
        new = np.arange(len(stored.vertices), dtype=np.int32)  # a halo, which has no rows, stays behind them
        new[order] = np.arange(len(order))
        counts = np.diff(stored.indptr)[order]
        indptr = np.concatenate(([0], np.cumsum(counts)))
        places = np.arange(indptr[-1]) + np.repeat(stored.indptr[:-1][order] - indptr[:-1], counts)
        splits = {name: np.sort(new[ids.numpy()]) for name, ids in dataset.splits(stored).items()}
        return cls(
            num_own,
            torch.from_numpy(stored.vertices[order]).to(device),
            torch.from_numpy(stored.degree[order]).to(device),
            indptr,
            new[stored.indices[places]],
            torch.from_numpy(np.asarray(stored.features[order], np.float32)).to(device),
            dataset.labels(stored)[torch.from_numpy(order[:num_own])].to(device),
            {name: torch.from_numpy(ids).to(device, torch.int64) for name, ids in splits.items()},
            **cls.links(stored, new, dataset.partition.k, device),
        )

    @classmethod
    def of_two(cls, task: Task) -> Self:
        """Return a whole graph, of two vertices and an edge in each direction, to try out a model."""
        degree, indices = torch.ones(2, dtype=torch.int64), np.array([1, 0], np.int32)
        splits = {name: torch.empty(0, dtype=torch.int64) for name in SPLITS}
        features = torch.ones(2, task.features)
        return cls(2, torch.arange(2), degree, np.arange(3), indices, features, task.example()[1], splits)

    @staticmethod
    @abstractmethod
    def links(stored: Any, new: LocalIds, parts: int, device: torch.device) -> dict[str, Any]:
        """Return what leads to other parts, by its name. ``new`` holds the place of each stored vertex."""

    @property
    @abstractmethod
    def facts(self) -> dict[str, int]:
        """Columns of this part in the table of workers."""


class Exchange(ABC):
    """The messages of a worker, as layers of the graph.

    Attributes
    ----------
    layers : sequence of Neighbourhood
        One for each layer of the network, in training.
    exact : sequence of Neighbourhood
        One for each layer, for scores. They always include all messages.
    """

    dataset: ClassVar[type[AnyDataset[Any]]]
    part: ClassVar[type[Part]]
    held: ClassVar[str]
    """The name of a part where memory is short."""

    decisive: ClassVar[tuple[str, ...]]
    """The parameters of the exchange, which decide the results."""

    layers: Sequence[Neighbourhood]
    exact: Sequence[Neighbourhood]

    @abstractmethod
    def __init__(self, part: Any, options: Any, tools: Tools) -> None:
        """Prepare the messages of a part."""

    @staticmethod
    @abstractmethod
    def summary(options: Any, dataset: Any) -> dict[str, Any]:
        """Return what the summary of a training adds."""

    @staticmethod
    @abstractmethod
    def needs(dataset: Any, options: Any, rows: int) -> list[Need]:
        """Return the memory that the messages take, where the largest part has so many rows."""

    @abstractmethod
    def begin(self, epoch: int) -> None:
        """Begin an epoch of training."""

    def row(self) -> dict[str, Any]:
        """Return additional columns of an epoch. They are equal in all processes."""
        return {}

    @abstractmethod
    def close(self) -> None:
        """Receive pending messages."""
