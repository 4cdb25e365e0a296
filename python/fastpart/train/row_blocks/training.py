"""The worker of a block of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..config import Options
from ..data import Dataset
from ..full_graph.clock import Clock
from ..full_graph.kernels import kernel
from ..full_graph.training import FullBatch
from ..full_graph.wire import Group, device
from .share import share


class Worker(FullBatch):
    """One of the workers; it has the part of its rank."""

    open = Dataset

    def __init__(
        self,
        dataset: Dataset,
        options: Options,
        how: dict[str, Any],
        scratch: Path,
        state: dict[str, Any],
    ) -> None:
        where = device()
        make = kernel(how["aggregation"], where)
        super().__init__(share(dataset, how, options.layers, Group(), Clock(), make, where), options, state)
