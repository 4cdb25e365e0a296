"""``edges``: start workers for a partition directory with labels of edges."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....errors import ParameterError, arg
from ....partitions.partition import PartitionSource
from ...jobs.launch import Launch, number_of_workers
from ...memory import (
    BatchSize,
    Need,
    batches,
    edge_row_bytes,
    evaluation,
    kept_rows,
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
from ..sampled.driver import LearningRows
from .dataset import LabelledEdges
from .trained import TrainedEdges, edge_network, encoder_task


class Driver(LearningRows):
    """Starts workers for a partition directory with labels of edges."""

    synchronised = True
    told = ("halo_rf",)
    dataset: LabelledEdges
    options: EdgeOptions

    def __init__(self, method: Method, source: PartitionSource, options: EdgeOptions) -> None:
        if sampling_of(options.model) != NEIGHBOUR:
            raise ParameterError(
                f"model: {options.model!r} trains on sampled graphs, which do not leave out the edges of a batch"
            )
        dataset = LabelledEdges(source, options.relation)
        count = number_of_workers(dataset.partition.k, options.workers, options)
        super().__init__(method, options, dataset, count, options.workers)
        self.make, self.of_model = edge_network, encoder_task(self.task, options)
        if dataset.has_types:
            self.decisive["relation"] = list(dataset.key)

    def finished(self, launch: Launch, trained: TrainedModel) -> TrainedEdges:
        """Return the result."""
        return TrainedEdges(**vars(super().finished(launch, trained)), relation=self.dataset.key)

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes."""
        dataset, options, workers = self.dataset, self.options, self.workers
        (n, edges), training, task = (
            size_of(dataset),
            dataset.num_train,
            encoder_task(self.task, self.options),
        )
        batch = math.ceil((options.batch_size or training) * share_of_seeds(dataset, workers))
        fanouts = task.most_in_edges(dataset.fanouts(options))
        size = BatchSize.sampled(min(n, 2 * batch), fanouts, n, edges)
        parts = -(-dataset.partition.k // workers)
        records = max(int(part.indptr[part.num_inner]) for part in dataset.partition.parts)
        width = 2 * options.hidden + self.task.edge_features
        head = 7 * options.hidden * (width + self.task.classes) + 3 * batch * (width + options.hidden)
        return [
            weights(options, task),
            Need(
                "the head", number_bytes(options) * head, f"a smaller {arg('hidden')} or {arg('batch_size')}"
            ),
            *batches(options, task, size, row_bytes(dataset), 4 + edge_row_bytes(dataset, options)),
            *evaluation(dataset, options, parts),
            *kept_rows(dataset, options),
            *self.learned_needs(parts),
            Need("records to train on", 90 * training),
            Need("records of its parts", 40 * records * (1 + parts), "more parts"),
        ], ()
