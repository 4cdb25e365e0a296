"""The process group of the workers, and what torchrun says of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from ... import parameters
from ...errors import ParameterError
from ...parameters import StrPath
from .methods import METHODS


def backend(local_workers: int) -> str:
    """Return what workers talk through: NCCL, if each on this machine has a GPU of its own."""
    return "nccl" if torch.cuda.is_available() and torch.cuda.device_count() >= local_workers else "gloo"


def join_group(method: str, **where: Any) -> None:
    """Be one of the workers of a method, with the rank on this machine that the environment says."""
    local_rank, local_workers = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    name = backend(local_workers) if METHODS[method].gpus else "gloo"
    if name == "nccl":
        torch.cuda.set_device(local_rank)
    dist.init_process_group(name, **where)


@contextmanager
def torchrun_group(method: str) -> Iterator[None]:
    """Be in the group of the processes that torchrun started."""
    join_group(method, init_method="env://")
    try:
        yield
    finally:
        dist.destroy_process_group()


def under_torchrun() -> bool:
    """Return whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def world_size() -> int:
    """Return how many processes torchrun started, on all machines together."""
    return int(os.environ["WORLD_SIZE"])


def shared_output(out: StrPath | None, workers: int | None = None) -> Path:
    """Return ``out`` under torchrun, which leaves nothing else to say of the workers."""
    if workers is not None or out is None:
        raise ParameterError(
            "under torchrun, --nproc-per-node and --nnodes say how many workers there are, and out= is needed: "
            "a folder that all of them see"
        )
    return parameters.path("out", out)
