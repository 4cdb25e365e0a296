"""Start the workers of training on mini-batches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from ... import _core
from ...core import parameters
from ...core.options import RunOptions
from ...core.parameters import StrPath
from ...loading.cached_rows import checked
from ..config import OnEpoch, Options, options_of, report_of
from ..data import Dataset
from ..jobs.group import Device, number_of_workers
from ..jobs.launch import launching
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
from .traces import merge

SamplingRule = Literal["uniform", "labor"]
SAMPLING_RULES: tuple[SamplingRule, ...] = get_args(SamplingRule)

Precision = Literal["float32", "bfloat16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


@dataclass(frozen=True)
class Start:
    """A training whose parameters were checked.

    Attributes
    ----------
    method : str
        Its name.
    options, run, report
        As :func:`.config.options_of` and :func:`.config.report_of` return them.
    dataset : Dataset
        The partition directory.
    how, running : dict
        Parameters that change its results, and those that do not.
    device, asked
        Where workers compute, and how many the user asked for.
    """

    method: str
    options: Options
    run: RunOptions
    report: OnEpoch
    dataset: Dataset
    how: dict[str, Any]
    running: dict[str, Any]
    device: Device
    asked: int | None

    @property
    def workers(self) -> int:
        """Number of workers on all machines."""
        processors = self.run.threads or _core.default_threads()
        if self.device == "cuda":
            processors = torch.cuda.device_count()
        return number_of_workers(self.dataset.partition.k, self.asked, processors)

    def needs(self, workers: int) -> list[Need]:
        """Return what each worker takes."""
        options, dataset = self.options, self.dataset
        (n, edges), training = size_of(dataset), dataset.num_train
        share = share_of_seeds(dataset, workers)
        seeds = math.ceil((options.batch_size or training) * share)
        size = BatchSize.of(options, seeds, training, n, edges)
        parts = -(-dataset.partition.k // workers)
        kept = min(self.running["resident"] or 0, n * row_bytes(dataset)) if self.device == "cpu" else 0
        clustered = 12 * edges // workers if sampling_of(options.model) == CLUSTER else 0
        return [
            weights(options, dataset.task),
            *batches(options, dataset.task, size, row_bytes(dataset), 12),
            *evaluation(dataset, options, parts),
            Need("training vertices and ids", 56 * training + 8 * n),
            Need("resident rows", kept, "a smaller resident="),
            Need("edges to cluster", clustered, "a model that samples neighbours"),
        ]

    def train(
        self,
        out: StrPath | None,
        resume: bool,
        overwrite: bool,
        timeout: float,
        trace: Path | None = None,
    ) -> TrainedModel:
        """Start the workers, and return the result."""
        measured = self.dataset.manifest.get("summary", {})
        workers = self.workers
        how = self.how
        if sampling_of(self.options.model) != NEIGHBOUR:
            how = {**how, "workers": workers}  # each samples graphs of its own parts
        summary = {
            "parts": self.dataset.partition.k,
            **{name: measured.get(name) for name in ("halo_rf", "label_skew")},
            "workers": workers,
        }
        running = (self.run, self.report, timeout, self.device, self.asked)
        with launching(out, resume, overwrite, *running) as launch:
            trained = launch.train(
                self.method,
                self.options,
                how,
                self.dataset,
                workers,
                summary,
                self.needs(workers),
                **self.running,
            )
            if trace is not None:
                launch.once(lambda: merge(launch.scratch, workers, trace))
            return trained


def start(
    method: str,
    source: StrPath,
    given: Mapping[str, Any],
    how: Mapping[str, Any],
    workers: int | None,
    device: Device,
    **running: Any,
) -> Start:
    """Check the parameters of a user."""
    options, run = options_of(given)
    checked_how = {
        "sampling": parameters.choice("sampling", how["sampling"], SAMPLING_RULES),
        "precision": parameters.choice("precision", how["precision"], PRECISIONS),
    }
    report = report_of(given, run, options.epochs)
    asked = None if workers is None else parameters.integer("workers", workers, 1, 1 << 12)
    running = {
        "ahead": parameters.integer("ahead", how["ahead"], 0, 2**10),
        "cache": checked(how["cache"], how["cache_by"]),
        "cache_by": how["cache_by"],
        "resident": parameters.memory_size(how["resident"], "resident", 0),
        "scheduled": False,
        **running,
    }
    started = Start(method, options, run, report, Dataset(source), checked_how, running, device, asked)
    refuse_before_workers(started.dataset.task, options, started.workers)
    return started
