"""The workers of a method."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from ...partitions.partition import PartitionSource
from ..data import AnyDataset
from . import loop


@dataclass(frozen=True)
class Place:
    """Where a training works.

    Attributes
    ----------
    scratch : pathlib.Path
        A folder for temporary files that all workers see.
    out : pathlib.Path
        The folder of the history.
    free_bytes : int
        Memory for the batches of a worker.
    """

    scratch: Path
    out: Path
    free_bytes: int

    def sent(self) -> dict[str, Any]:
        """Return the fields as JSON, which :meth:`received` reads in another process."""
        return {**vars(self), "scratch": os.fspath(self.scratch), "out": os.fspath(self.out)}

    @classmethod
    def received(cls, values: Mapping[str, Any]) -> Self:
        """Return what :meth:`sent` sent."""
        return cls(Path(values["scratch"]), Path(values["out"]), values["free_bytes"])


class Worker(loop.Worker, Protocol):
    """A process of a job. The process group exists before the worker."""

    def __init__(self, dataset: Any, options: Any, place: Place, state: dict[str, Any]) -> None:
        """Begin a training (``state`` is empty), or continue from the :meth:`state` of rank 0."""

    @staticmethod
    def open(source: PartitionSource, target: str | None) -> AnyDataset[Any]:
        """Return the dataset of a partition directory."""
