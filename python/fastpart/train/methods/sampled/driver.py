"""``sampled`` and ``bytegnn``: start workers over all parts. Temporal samples ask more of a directory and a model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack, suppress

import numpy as np
import torch
from torch import Tensor

from .... import _core
from ....errors import ParameterError, arg
from ....loading.planning.windows import PACKING_BYTES, planned_for
from ....loading.trace import merge
from ....partitions.loader_options import EpochOptions, TemporalOptions
from ....partitions.partition import PartitionSource
from ....partitions.plan import Plan
from ....partitions.seeds import loaded_seeds
from ....runtime.environment import found
from ...data.dataset import SPLITS, Dataset
from ...data.learned_rows import learned_files
from ...graphs.rows import Rows
from ...jobs import driver
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
    workers_here,
)
from ...method_options import ByteGNNOptions, SampledOptions
from ...models import CLUSTER, NEIGHBOUR, build, sampling_of
from ...models.scores import Task
from ...options import Options, TemporalRule
from ...registry import Method
from ...runs.trained import TrainedModel, with_learned_rows
from .steps import no_degrees


def temporal_of(options: SampledOptions | ByteGNNOptions) -> TemporalRule | None:
    """Return how temporal samples are made. None: times do not count."""
    return None if isinstance(options, ByteGNNOptions) else options.temporal


def refuse_untimed(dataset: Dataset, temporal: TemporalRule) -> None:
    """Raise an error unless all vertices that are trained on or scored have times."""
    given = TemporalOptions(temporal=temporal)
    for split in SPLITS:
        if split not in dataset.known.get("splits", []):
            continue
        loaded_seeds(split, dataset.partition, given, dataset.target)


def refuse_degrees(task: Task, options: Options) -> None:
    """Raise an error if a model samples graphs, or needs in-degrees of the whole graph."""
    if sampling_of(options.model) != NEIGHBOUR:
        raise ParameterError(
            f"model: {options.model} trains on sampled graphs, which have no times. Use another one with "
            f"{arg('temporal')}"
        )
    if task.target:
        return  # networks over types know no degrees
    asked: list[bool] = []

    def degrees() -> Tensor:
        asked.append(True)
        return torch.ones(2, dtype=torch.int64)

    two = Rows(np.arange(3), np.array([1, 0], np.int32), degrees, sources=2)
    with (
        torch.random.fork_rng(devices=[]),
        torch.no_grad(),
        suppress(Exception),
    ):  # others tell what does not fit
        build(task, options).eval()([two] * options.layers, torch.ones(2, task.features))
    if asked:
        no_degrees()


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
            Need("training vertices and ids", 56 * training + 4 * n + _core.sampler_memory(n)),
            *kept_rows(dataset, options),
            Need("edges to cluster", clustered, "a model that samples neighbours"),
            *self._plan_needs(),
            *self.learned_needs(parts),
        ], ()
