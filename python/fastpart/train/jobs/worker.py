"""The interfaces of a method: its dataset and its workers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from ...parameters import StrPath
from ..config import Options
from ..scores import Task


class Graph(Protocol):
    """The dataset of a method.

    Attributes
    ----------
    path : pathlib.Path
        The partition directory.
    manifest : mapping
        The manifest of the directory.
    task : Task
        The classification task.
    """

    @property
    def path(self) -> Path: ...  # noqa: D102
    @property
    def manifest(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def task(self) -> Task: ...  # noqa: D102


class Worker(Protocol):
    """A process of a training. The process group exists before the worker. All workers act in step.

    States and best weights are stored as tensors on the CPU. A worker may have a method ``close`` without arguments,
    for example to receive pending messages. It is called after all workers have finished.

    Attributes
    ----------
    network : torch.nn.Module
        The network. After each round its weights are equal in all workers.
    """

    network: nn.Module

    def __init__(
        self, dataset: Any, options: Options, how: dict[str, Any], scratch: Path, state: dict[str, Any]
    ) -> None:
        """Begin a training (``state`` is empty), or continue from the :meth:`state` of rank 0."""

    @staticmethod
    def open(source: StrPath) -> Graph:
        """Return the dataset of a partition directory."""

    def round(self, epochs: int) -> dict[str, Any]:
        """Train some epochs, and return the row of the history. That of rank 0 counts.

        It has at least ``loss``, ``seconds``, ``remote_bytes`` and ``worker_bytes``, and scores if there are any.
        """

    def state(self) -> dict[str, Any]:
        """Return what a resume needs. Only rank 0 is asked, so this must not communicate."""

    def final(self, best: dict[str, Tensor]) -> dict[str, Any]:
        """Return scores of these weights and entries of the method for the summary. Those of rank 0 count."""
