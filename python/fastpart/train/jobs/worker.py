"""The interfaces of a method: its dataset and its workers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from ...core.parameters import StrPath
from .. import loop
from ..config import Options
from ..scores import Task
from ..validation import ValidationData


class Graph(ValidationData, Protocol):
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


class Worker(loop.Worker, Protocol):
    """A process of a job. The process group exists before the worker."""

    def __init__(
        self, dataset: Any, options: Options, how: dict[str, Any], scratch: Path, state: dict[str, Any]
    ) -> None:
        """Begin a training (``state`` is empty), or continue from the :meth:`state` of rank 0."""

    @staticmethod
    def open(source: StrPath) -> Graph:
        """Return the dataset of a partition directory."""
