"""What the workers of a full-batch method send each other about vertices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from ...data import AnyDataset
from ...graphs.neighbourhood import Neighbourhood
from ...memory import Need
from .part import Part, Tools


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
