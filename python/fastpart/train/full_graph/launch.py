"""One worker for each part of a partition directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ...errors import ParameterError
from ...runtime.environment import found
from ..config import Options
from ..data import AnyDataset
from ..jobs.launch import Launch
from ..memory import Need
from ..trained import TrainedModel


def train(
    method: str,
    options: Options,
    how: Mapping[str, Any],
    dataset: AnyDataset[Any],
    summary: Mapping[str, Any],
    needs: Sequence[Need],
    launching: AbstractContextManager[Launch],
) -> TrainedModel:
    """Train with one worker per part."""
    k = dataset.partition.k
    if (ranks := found()) is not None and ranks.size != k:
        raise ParameterError(
            f"source: {k} parts for {ranks.size} processes. Start one process per part: --nnodes times "
            "--nproc-per-node of torchrun"
        )
    with launching as launch:
        return launch.train(method, options, how, dataset, k, summary, needs)
