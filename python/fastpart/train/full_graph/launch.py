"""Full batches: one worker for each part of a partition directory."""

from __future__ import annotations

from abc import abstractmethod

from ...errors import ParameterError
from ...runtime.environment import found
from ..jobs import driver


class Driver(driver.Driver):
    """Starts one worker for each part."""

    synchronised = True

    def refuse(self) -> None:
        """Refuse what cannot be trained. The model is tried on two vertices and the edges between them."""
        super().refuse()
        self.try_model()
        if (ranks := found()) is not None and ranks.size != self.workers:
            raise ParameterError(
                f"source: {self.workers} parts for {ranks.size} processes. Start one process per part: --nnodes times "
                "--nproc-per-node of torchrun"
            )

    @abstractmethod
    def try_model(self) -> None:
        """Refuse a model that cannot be trained over parts."""
