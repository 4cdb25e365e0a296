"""What training with temporal samples asks of a directory and of a model, before workers start for it."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import torch
from torch import Tensor

from ....errors import ParameterError, arg
from ....partitions.loader_options import TemporalOptions
from ....partitions.temporal import loaded_seeds
from ...data import SPLITS, Dataset
from ...graphs.rows import Rows
from ...method_options import ByteGNNOptions, SampledOptions
from ...models import NEIGHBOUR, build, sampling_of
from ...models.scores import Task
from ...options import Options, TemporalRule
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
