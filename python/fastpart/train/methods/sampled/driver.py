"""``sampled`` and ``bytegnn``: start workers over all parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack

from ....errors import ParameterError, arg
from ....loading.planning.windows import PACKING_BYTES, planned_for
from ....partitions.loader_options import EpochOptions
from ....partitions.partition import PartitionSource
from ....partitions.plan import Plan
from ....runtime.environment import found
from ...data import Dataset
from ...jobs import driver
from ...jobs.launch import Launch, number_of_workers
from ...learned_rows import learned_files
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
    workers_here,
)
from ...method_options import ByteGNNOptions, SampledOptions
from ...models import CLUSTER, NEIGHBOUR, sampling_of
from ...registry import Method
from ...runs.trained import TrainedModel, with_learned_rows
from .temporal import refuse_degrees, refuse_untimed, temporal_of
from .traces import merge


class LearningRows(driver.Driver):
    """Starts workers that learn rows beside a network: those of types without features."""

    dataset: Dataset

    def prepare(self, launch: Launch, stack: ExitStack) -> None:
        """Note the files of learned rows."""
        if self.task.learned:
            entries = learned_files(self.task.learned, self.dataset.partition.k)
            launch.once(lambda: launch.folder.add(entries))

    def finished(self, launch: Launch, trained: TrainedModel) -> TrainedModel:
        """Return the result with its learned rows."""
        learned = self.task.learned
        return with_learned_rows(trained, launch.folder.path, learned) if learned else trained

    def learned_needs(self, parts: int) -> list[Need]:
        """Return what the learned rows of so many parts take, if there are any, with their Adam and the best ones."""
        if not self.dataset.has_types:
            return []
        rows = self.dataset.rows_learned * parts // self.dataset.partition.k
        return [
            Need(
                "learned rows and their Adam",
                4 * number_bytes(self.options) * self.options.hidden * rows,
                f"a smaller {arg('hidden')}",
            )
        ]


class Driver(LearningRows):
    """Starts workers that make their batches ahead of their use, or by scheduled tasks."""

    synchronised = True
    any_workers = True
    options: SampledOptions | ByteGNNOptions

    def __init__(
        self, method: Method, source: PartitionSource, options: SampledOptions | ByteGNNOptions
    ) -> None:
        scheduled, asked = isinstance(options, ByteGNNOptions), options.workers
        dataset = Dataset(source, options.target)
        if asked is None and options.plan is not None and found() is None:
            asked = int(Plan.read(options.plan).key["workers"])  # a plan is for one number of them
        super().__init__(
            method, options, dataset, number_of_workers(dataset.partition.k, asked, options), asked
        )
        self.decisive = {"sampling": options.sampling}
        if (temporal := temporal_of(options)) is not None:
            refuse_degrees(dataset.task, options)
            refuse_untimed(dataset, temporal)
            self.decisive["temporal"] = temporal
        if sampling_of(options.model) != NEIGHBOUR:
            if scheduled:
                raise ParameterError(
                    f"model: {options.model} trains on sampled graphs, which are not scheduled. Train it with sampled"
                )
            self.any_workers = False  # each samples graphs of its own parts
            self.decisive["workers"] = self.workers
        self._plan = None if options.plan is None else self._planned(options.plan)

    def _planned(self, plan: str) -> Plan:
        """Return the plan, which is for the batches of this training."""
        options = self.options
        if options.resident is not None or sampling_of(options.model) != NEIGHBOUR:
            raise ParameterError(
                f"plan: it takes the place of {arg('resident')}, and is for models that sample neighbours. Leave it out"
            )
        of_loader = EpochOptions(
            batch_size=options.batch_size or self.dataset.num_train,
            seed=options.seed,
            sampling=options.sampling,
            temporal=temporal_of(options),
        )
        partition, fanouts, target = (
            self.dataset.partition,
            self.dataset.fanouts(options),
            self.dataset.target,
        )
        return planned_for(plan, partition, "train", fanouts, self.workers, of_loader, input=target)[0]

    def _plan_needs(self) -> list[Need]:
        """Return what the plan takes of each worker."""
        if self._plan is None:
            return []
        more = self.options.epochs > self._plan.epochs
        packing = PACKING_BYTES + 8 * self._plan._most_rows if more else 0
        cached = self._plan._most_cached
        return [
            Need("rows that the plan caches", cached, f"a plan with a smaller {arg('memory')}"),
            Need("packing the next epochs", packing, "a plan of all epochs"),
        ]

    def finished(self, launch: Launch, trained: TrainedModel) -> TrainedModel:
        """Write the trace, if the user wants one, and return the result."""
        if (trace := getattr(self.options, "trace", None)) is not None:
            launch.once(lambda: merge(launch.scratch, self.workers, trace))
        return super().finished(launch, trained)

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes."""
        dataset, options, workers = self.dataset, self.options, self.workers
        (n, edges), training = size_of(dataset), dataset.num_train
        seeds = math.ceil((options.batch_size or training) * share_of_seeds(dataset, workers))
        fanouts = dataset.task.most_in_edges(dataset.fanouts(options))
        size = BatchSize.of(options, seeds, training, n, edges, fanouts)
        parts = -(-dataset.partition.k // workers)
        moved = bool(options.resident) or workers_here(workers) < workers
        clustered = 12 * edges // workers if sampling_of(options.model) == CLUSTER else 0
        return [
            weights(options, dataset.task),
            *batches(
                options, dataset.task, size, row_bytes(dataset, moved), 12 + edge_row_bytes(dataset, options)
            ),
            *evaluation(dataset, options, parts),
            Need("training vertices and ids", 56 * training + 8 * n),
            *kept_rows(dataset, options),
            Need("edges to cluster", clustered, "a model that samples neighbours"),
            *self._plan_needs(),
            *self.learned_needs(parts),
        ], ()
