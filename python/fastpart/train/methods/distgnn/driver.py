"""``distgnn`` and ``sancus``: one worker for each part of a partition directory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....errors import ParameterError, arg
from ....partitions.partition import PartitionSource
from ....runtime.environment import found
from ...jobs import driver
from ...memory import MORE_PARTS, Need, full_batch, graph_bytes, number_bytes, weights
from ...options import TrainOptions
from ...registry import Method
from .trial import try_model
from .worker import EXCHANGES


class Driver(driver.Driver):
    """Starts one worker for each part."""

    synchronised = True

    def __init__(self, method: Method, source: PartitionSource, options: TrainOptions) -> None:
        self._exchange = exchange = EXCHANGES[method.over]
        dataset = exchange.dataset(source).without_edge_features()
        super().__init__(method, options, dataset, dataset.partition.k)
        dataset.refuse_categories(
            f"{method.name} exchanges the sums of the features once, and learned rows change in every step"
        )
        self.decisive = {name: getattr(options, name) for name in exchange.decisive}

    def refuse(self) -> None:
        """Refuse what cannot be trained. The model is tried on two vertices and the edges between them."""
        super().refuse()
        try_model(self.task, self.options, self._exchange)
        if (ranks := found()) is not None and ranks.size != self.workers:
            raise ParameterError(
                f"source: {self.workers} parts for {ranks.size} processes. Start one process per part: --nnodes times "
                "--nproc-per-node of torchrun"
            )

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of parts and messages."""
        return self._exchange.summary(self.options, self.dataset)

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes: its part, the sums of the features, activations, and messages."""
        options, task, parts = self.options, self.task, self.dataset.partition.parts
        rows = max(part.num_inner for part in parts)
        edges = max(int(part.indptr[part.num_inner]) for part in parts)
        return [
            Need(self._exchange.held, graph_bytes(options, rows, edges, task.features), MORE_PARTS),
            Need("sums of its features", 2 * number_bytes(options) * rows * task.features, MORE_PARTS),
            Need("activations", full_batch(options, task, rows, rows, edges), f"a smaller {arg('hidden')}"),
            *self._exchange.needs(self.dataset, options, rows),
            weights(options, task),
        ], ()
