"""``full``: train in this process, on the whole graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....errors import arg
from ....partitions.partition import PartitionSource
from ...data import open_dataset
from ...jobs import driver
from ...learning.trainable import refuse_unfit
from ...memory import BatchSize, Need, batches, full_batch, graph_bytes, size_of, weights
from ...models import NEIGHBOUR, sampling_of
from ...options import TrainOptions
from ...registry import Method


class Driver(driver.Driver):
    """Trains on the whole graph in this process."""

    alone = True

    def __init__(self, method: Method, source: PartitionSource, options: TrainOptions) -> None:
        super().__init__(method, options, open_dataset(source), 1)

    def summary(self) -> dict[str, Any]:
        """Return nothing: parts do not matter."""
        return {}

    def refuse(self) -> None:
        """Refuse what cannot be trained. This process has what the user plugs in."""
        refuse_unfit(self.task, self.options)

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what the process takes: the graph, its activations, and those of batches if it trains on them."""
        (n, edges), options, task = size_of(self.dataset), self.options, self.task
        whole = options.batch_size is None and sampling_of(options.model) == NEIGHBOUR
        found = [
            Need("the whole graph", graph_bytes(options, n, edges, task.features), "sampled, which maps it"),
            Need("activations", full_batch(options, task, n, n, edges, whole), f"a smaller {arg('hidden')}"),
            weights(options, task),
        ]
        if not whole:
            size = BatchSize.of(options, options.batch_size or n, self.dataset.num_train, n, edges)
            found += batches(options, task, size, 4 * task.features)
        return found, ()
