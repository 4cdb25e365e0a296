"""``edges``: start workers for a partition directory with labels of edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ....errors import ParameterError, arg
from ....partitions.partition import PartitionSource
from ...jobs import driver
from ...jobs.launch import Launch, number_of_workers
from ...memory import (
    BatchSize,
    Need,
    batches,
    edge_row_bytes,
    evaluation,
    number_bytes,
    row_bytes,
    share_of_seeds,
    size_of,
    weights,
)
from ...method_options import EdgeOptions
from ...models import NEIGHBOUR, sampling_of
from ...registry import Method
from ...runs.trained import TrainedModel
from .dataset import LabelledEdges
from .outputs import edge_network, encoder_task
from .trained import TrainedEdges


class Driver(driver.Driver):
    """Starts workers for a partition directory with labels of edges."""

    synchronised = True
    dataset: LabelledEdges
    options: EdgeOptions

    def __init__(self, method: Method, source: PartitionSource, options: EdgeOptions) -> None:
        if sampling_of(options.model) != NEIGHBOUR:
            raise ParameterError(
                f"model: {options.model!r} trains on sampled graphs, which do not leave out the edges of a batch"
            )
        dataset = LabelledEdges(source)
        count = number_of_workers(dataset.partition.k, options.workers, options)
        super().__init__(method, options, dataset, count, options.workers)
        self.make, self.of_model = edge_network, encoder_task(self.task, options)

    def finished(self, launch: Launch, trained: TrainedModel) -> TrainedEdges:
        """Return the result."""
        return TrainedEdges(**vars(trained))

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes."""
        dataset, options, workers = self.dataset, self.options, self.workers
        (n, edges), training, task = (
            size_of(dataset),
            dataset.num_train,
            encoder_task(self.task, self.options),
        )
        batch = math.ceil((options.batch_size or training) * share_of_seeds(dataset, workers))
        size = BatchSize.sampled(min(n, 2 * batch), options.fanouts, n, edges)
        parts = -(-dataset.partition.k // workers)
        records = max(int(part.indptr[part.num_inner]) for part in dataset.partition.parts)
        resident = min(options.resident or 0, n * dataset.partition.parts[0].feature_bytes)
        width = 2 * options.hidden + self.task.edge_features
        head = 7 * options.hidden * (width + self.task.classes) + 3 * batch * (width + options.hidden)
        return [
            weights(options, task),
            Need(
                "the head", number_bytes(options) * head, f"a smaller {arg('hidden')} or {arg('batch_size')}"
            ),
            *batches(options, task, size, row_bytes(dataset), 4 + edge_row_bytes(dataset, options)),
            *evaluation(dataset, options, parts),
            Need(
                "places of rows that are kept",
                4 * n * options.keeps,
                f"no {arg('cache')} and no {arg('resident')}",
            ),
            Need("resident rows", resident if options.device == "cpu" else 0, f"a smaller {arg('resident')}"),
            Need("records to train on", 90 * training),
            Need("records of its parts", 40 * records * (1 + parts), "more parts"),
        ], ()

    def summary(self) -> dict[str, Any]:
        """Return what the summary says of parts and workers. Vertices have no labels."""
        facts = super().summary()
        del facts["label_skew"]
        return facts
