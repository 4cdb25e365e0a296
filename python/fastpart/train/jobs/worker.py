"""The workers of a method."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from ...partitions.partition import PartitionSource
from ..config import Options
from ..data import AnyDataset
from . import loop


class Worker(loop.Worker, Protocol):
    """A process of a job. The process group exists before the worker."""

    def __init__(
        self, dataset: Any, options: Options, how: dict[str, Any], scratch: Path, state: dict[str, Any]
    ) -> None:
        """Begin a training (``state`` is empty), or continue from the :meth:`state` of rank 0."""

    @staticmethod
    def open(source: PartitionSource, target: str | None) -> AnyDataset[Any]:
        """Return the dataset of a partition directory."""
