"""``full``: train in this process, on the whole graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....errors import ParameterError, arg, code
from ....partitions.partition import PartitionSource
from ...data.dataset import AnyDataset, open_dataset
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
        dataset = open_dataset(source, options.target)
        super().__init__(method, options, dataset, 1)
        if dataset.has_types:
            _refuse_for_types(dataset, options)

    def summary(self) -> dict[str, Any]:
        """Return nothing: parts do not matter."""
        return {}

    def refuse(self) -> None:
        """Refuse what cannot be trained. This process has what the user plugs in."""
        refuse_unfit(self.task, self.options)

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what the process takes: the graph, its activations, and those of batches if it trains on them."""
        (n, edges), options, task = size_of(self.dataset), self.options, self.task
        width = max(task.input_widths(0).values())
        whole = options.batch_size is None and sampling_of(options.model) == NEIGHBOUR
        found = [
            Need("the whole graph", graph_bytes(options, n, edges, width), "sampled, which maps it"),
            Need("activations", full_batch(options, task, n, n, edges, whole), f"a smaller {arg('hidden')}"),
            weights(options, task),
        ]
        if not whole:
            size = BatchSize.of(options, options.batch_size or n, self.dataset.num_train, n, edges)
            found += batches(options, task, size, 4 * task.features)
        return found, ()


def _refuse_for_types(dataset: AnyDataset[Any], options: TrainOptions) -> None:
    """Refuse what only graphs without types have."""
    sampled = code("fastpart.train.sampled", "`fastpart train sampled`")
    if options.batch_size is not None:
        raise ParameterError(
            "batch_size: batches of a graph in memory are sampled without types. Leave it out, and each step is of all "
            f"training vertices, or train with {sampled}"
        )
    if dataset.task.learned:
        raise ParameterError(
            f"source: {', '.join(dataset.task.learned)} have no features, and learned rows are kept by the workers "
            f"of a partition. Save features of all types, or train with {sampled}"
        )
