"""One worker for each part of a partition directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import ParameterError
from ...runtime.environment import found
from ..config import Call
from ..data import AnyDataset
from ..jobs.launch import launching
from ..memory import Need
from ..trained import TrainedModel


def train(
    method: str,
    call: Call,
    how: Mapping[str, Any],
    dataset: AnyDataset[Any],
    summary: Mapping[str, Any],
    needs: Sequence[Need],
) -> TrainedModel:
    """Train with one worker per part."""
    k = dataset.partition.k
    if (ranks := found()) is not None and ranks.size != k:
        raise ParameterError(
            f"source: {k} parts for {ranks.size} processes. Start one process per part: --nnodes times "
            "--nproc-per-node of torchrun"
        )
    with launching(call) as launch:
        return launch.train(method, call.options, how, dataset, k, summary, needs)
