"""``sampled`` and ``bytegnn``: start workers over all parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch

from ... import _core
from ...core import parameters
from ...core.parameters import StrPath
from ...errors import ParameterError
from ...loading.cached_rows import checked
from ..config import Call
from ..data import Dataset
from ..jobs import driver
from ..jobs.group import number_of_workers
from ..jobs.launch import Launch
from ..keywords import SAMPLING_RULES
from ..memory import (
    BatchSize,
    Need,
    batches,
    evaluation,
    row_bytes,
    share_of_seeds,
    size_of,
    weights,
    workers_here,
)
from ..models import CLUSTER, NEIGHBOUR, sampling_of
from ..runs.trained import TrainedModel
from ..trainer import Ahead, InputRows, Neighbours, Scheduled, Trainer
from .traces import merge


class Driver(driver.Driver):
    """Starts workers that make their batches ahead of their use, or by scheduled tasks."""

    synchronised = True
    dataset: Dataset

    def __init__(self, trainer: Trainer, source: StrPath, call: Call) -> None:
        options, made, rows, asked = call.options, trainer.made, trainer.exchange, call.workers
        assert isinstance(trainer.batches, Neighbours)
        assert isinstance(made, Ahead | Scheduled)
        assert isinstance(rows, InputRows)
        sampling = parameters.choice("sampling", trainer.batches.sampling, SAMPLING_RULES)
        scheduled = isinstance(made, Scheduled)
        running = {
            "ahead": parameters.integer("ahead", made.batches, 0, 2**10),
            "io": parameters.rows_io(rows.io),
            "cache": checked(rows.cache, rows.cache_by),
            "cache_by": rows.cache_by,
            "resident": parameters.memory_size(rows.resident, "resident", 0),
            "scheduled": scheduled,
            "scores": call.scores,
        }
        self._trace = _trace(made) if isinstance(made, Scheduled) else None
        dataset = Dataset(source)
        super().__init__(trainer, call, dataset, _workers(dataset, call, asked), asked)
        self.how = {"sampling": sampling}
        self.running = {**running, "traced": self._trace is not None}
        if sampling_of(options.model) != NEIGHBOUR:
            if scheduled:
                raise ParameterError(
                    f"model: {options.model} trains on sampled graphs, which are not scheduled. Train it with sampled"
                )
            self.how["workers"] = self.workers  # each samples graphs of its own parts

    @property
    def _tables(self) -> int:
        """How many tables say which rows are kept: cached ones, and those on the device."""
        return sum(bool(self.running[name]) for name in ("cache", "resident"))

    def finished(self, launch: Launch, trained: TrainedModel) -> TrainedModel:
        """Write the trace, if the user wants one."""
        if (trace := self._trace) is not None:
            launch.once(lambda: merge(launch.scratch, self.workers, trace))
        return trained

    def needs(self) -> tuple[Sequence[Need], Sequence[Need]]:
        """Return what each worker takes."""
        dataset, options, workers = self.dataset, self.options, self.workers
        (n, edges), training = size_of(dataset), dataset.num_train
        seeds = math.ceil((options.batch_size or training) * share_of_seeds(dataset, workers))
        size = BatchSize.of(options, seeds, training, n, edges)
        parts = -(-dataset.partition.k // workers)
        resident = min(self.running["resident"] or 0, n * dataset.partition.parts[0].feature_bytes)
        moved = resident > 0 or workers_here(workers) < workers
        clustered = 12 * edges // workers if sampling_of(options.model) == CLUSTER else 0
        return [
            weights(options, dataset.task),
            *batches(options, dataset.task, size, row_bytes(dataset, moved), 12),
            *evaluation(dataset, options, parts),
            Need("training vertices and ids", 56 * training + 8 * n),
            Need("places of rows that are kept", 4 * n * self._tables, "no cache= and no resident="),
            Need("resident rows", resident if self.call.device == "cpu" else 0, "a smaller resident="),
            Need("edges to cluster", clustered, "a model that samples neighbours"),
        ], ()


def _workers(dataset: Dataset, call: Call, asked: int | None) -> int:
    """Return the number of workers on all machines."""
    processors = call.run.threads or _core.default_threads()
    if call.device == "cuda":
        processors = torch.cuda.device_count()
    return number_of_workers(dataset.partition.k, asked, processors)


def _trace(made: Scheduled) -> Path | None:
    """Return the file for who did what when."""
    target = None if made.trace is None else parameters.path("trace", made.trace)
    if target is not None and target.suffix != ".json":
        raise ParameterError(
            f"trace: {parameters.shown(target)} is no .json file. Choose a name that ends with .json"
        )
    return target
