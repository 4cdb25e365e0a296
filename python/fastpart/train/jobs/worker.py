"""What a method is for the job: what it trains on, and what it makes of each process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from ...parameters import StrPath
from ..config import Options
from ..scores import Task


class Graph(Protocol):
    """What every method knows of what it trains on.

    Attributes
    ----------
    path : pathlib.Path
        The partition directory.
    manifest : mapping
        Of that directory.
    task : Task
        What there is to learn.
    """

    @property
    def path(self) -> Path: ...  # noqa: D102
    @property
    def manifest(self) -> Mapping[str, Any]: ...  # noqa: D102
    @property
    def task(self) -> Task: ...  # noqa: D102


class Worker(Protocol):
    """What a method makes of each process. The process group is there when it is made, and all act in step.

    States and best weights are kept, and come back, as tensors on the CPU. A worker that must let go of something, as
    of messages that nobody waits for, has a method ``close`` without arguments, called after all have finished.

    Attributes
    ----------
    network : torch.nn.Module
        With weights that are the same at all workers after each round.
    """

    network: nn.Module

    def __init__(
        self, dataset: Any, options: Options, how: dict[str, Any], scratch: Path, state: dict[str, Any]
    ) -> None:
        """Begin, or go on from what :meth:`state` of rank 0 returned; ``state`` is empty in the beginning."""

    @staticmethod
    def open(source: StrPath) -> Graph:
        """Return the dataset of a partition directory."""

    def round(self, epochs: int) -> dict[str, Any]:
        """Train so many epochs, and return the row of the history, which is rank 0's.

        It has at least ``loss``, ``seconds``, ``remote_bytes`` and ``worker_bytes``, and scores, if there are any.
        """

    def state(self) -> dict[str, Any]:
        """Return what is needed to go on from here; asked of rank 0 only, so that it must not ask others."""

    def final(self, best: dict[str, Tensor]) -> dict[str, Any]:
        """Return scores of these weights, and what the method adds to the totals, for JSON; rank 0's count."""
