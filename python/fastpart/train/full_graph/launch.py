"""Start one worker for each part of a partition directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any

from ...errors import ParameterError
from ...options import RunOptions
from ...parameters import StrPath
from ..config import OnEpoch, Options
from ..data import AnyDataset
from ..following import output_of
from ..jobs.group import Device, refuse_few_gpus, shared_output, torchrun_group, under_torchrun, world_size
from ..jobs.job import Job
from ..jobs.launch import joined, supervised
from ..supervisor import Supervisor
from ..trained import TrainedModel


def train(
    method: str,
    dataset: AnyDataset[Any],
    options: Options,
    how: Mapping[str, Any],
    out: StrPath | None,
    resume: bool,
    run: RunOptions,
    report: OnEpoch,
    summary: Mapping[str, Any],
    device: Device,
) -> TrainedModel:
    """Train with one worker per part. ``how`` holds parameters of the method. ``summary`` is added to the result."""
    new = partial(Job, method=method, options=options, how=dict(how), resume=resume, device=device)
    k = dataset.partition.k
    if under_torchrun():
        shared = shared_output(out)
        if world_size() != k:
            raise ParameterError(
                f"source: {k} parts for {world_size()} processes. Start one process per part: --nnodes times "
                "--nproc-per-node of torchrun"
            )
        refuse_few_gpus(device, int(os.environ.get("LOCAL_WORLD_SIZE", k)))
        with torchrun_group(device):
            return joined(new, dataset, shared, run, report, summary)
    refuse_few_gpus(device, k)
    with Supervisor(run.tmp_dir) as group:
        return supervised(group, new, dataset, output_of(group, out, resume), k, run, report, summary)
