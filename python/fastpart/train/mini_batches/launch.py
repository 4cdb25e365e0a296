"""Start the workers of ``sampled`` and ``bytegnn``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ... import _core
from ...core import parameters
from ...core.parameters import StrPath
from ...errors import ParameterError
from ...loading.cached_rows import checked
from ..config import Call
from ..data import Dataset
from ..jobs.group import number_of_workers
from ..jobs.launch import launching
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
)
from ..models import CLUSTER, NEIGHBOUR, sampling_of
from ..trainable import refuse_before_workers
from ..trained import TrainedModel
from ..trainer import Ahead, InputRows, Neighbours, Scheduled, Trainer
from .traces import merge


def start(trainer: Trainer, source: StrPath, given: Mapping[str, Any]) -> TrainedModel:
    """Start the workers, which make their batches ahead of their use or by scheduled tasks."""
    call = Call.of(given)
    options, made, rows = call.options, trainer.made, trainer.exchange
    assert isinstance(trainer.batches, Neighbours)
    assert isinstance(made, Ahead | Scheduled)
    assert isinstance(rows, InputRows)
    how: dict[str, Any] = {
        "sampling": parameters.choice("sampling", trainer.batches.sampling, SAMPLING_RULES),
    }
    asked, scheduled = call.workers, isinstance(made, Scheduled)
    running: dict[str, Any] = {
        "ahead": parameters.integer("ahead", made.batches, 0, 2**10),
        "cache": checked(rows.cache, rows.cache_by),
        "cache_by": rows.cache_by,
        "resident": parameters.memory_size(rows.resident, "resident", 0),
        "scheduled": scheduled,
        "scores": call.scores,
    }
    trace = _trace(made) if isinstance(made, Scheduled) else None
    if trace is not None:
        running["traced"] = True
    dataset = Dataset(source)
    workers = _workers(dataset, call, asked)
    refuse_before_workers(dataset.task, options, workers, synchronised=True)
    if sampling_of(options.model) != NEIGHBOUR:
        if scheduled:
            raise ParameterError(
                f"model: {options.model} trains on sampled graphs, which are not scheduled. Train it with sampled"
            )
        how["workers"] = workers  # each samples graphs of its own parts
    measured = dataset.manifest.get("summary", {})
    summary = {
        "parts": dataset.partition.k,
        **{name: measured.get(name) for name in ("halo_rf", "label_skew")},
        "workers": workers,
    }
    needed = needs(dataset, call, workers, running["resident"])
    with launching(call, asked) as launch:
        trained = launch.train(trainer.method, options, how, dataset, workers, summary, needed, **running)
        if trace is not None:
            launch.once(lambda: merge(launch.scratch, workers, trace))
        return trained


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


def needs(dataset: Dataset, call: Call, workers: int, resident: int | None) -> list[Need]:
    """Return what each worker takes."""
    options = call.options
    (n, edges), training = size_of(dataset), dataset.num_train
    share = share_of_seeds(dataset, workers)
    seeds = math.ceil((options.batch_size or training) * share)
    size = BatchSize.of(options, seeds, training, n, edges)
    parts = -(-dataset.partition.k // workers)
    kept = min(resident or 0, n * row_bytes(dataset)) if call.device == "cpu" else 0
    clustered = 12 * edges // workers if sampling_of(options.model) == CLUSTER else 0
    return [
        weights(options, dataset.task),
        *batches(options, dataset.task, size, row_bytes(dataset), 12),
        *evaluation(dataset, options, parts),
        Need("training vertices and ids", 56 * training + 8 * n),
        Need("resident rows", kept, "a smaller resident="),
        Need("edges to cluster", clustered, "a model that samples neighbours"),
    ]
