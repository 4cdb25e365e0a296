"""The process group of the workers, and the variables of torchrun."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, get_args

import torch
import torch.distributed as dist

from ... import parameters
from ...errors import ParameterError
from ...parameters import StrPath

Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = get_args(Device)


def refuse_few_gpus(device: str, local_workers: int) -> None:
    """Refuse GPUs unless each worker on this machine can have one."""
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device == "cuda" and gpus < local_workers:
        raise ParameterError(
            f"device: 'cuda' needs a GPU for each of the {local_workers} processes on this machine, but torch sees "
            f"{gpus}. Use 'cpu', or as many processes as GPUs"
        )


def join_group(device: str, **where: Any) -> None:
    """Join the process group. With GPUs, tensors there go through NCCL. Each worker has the GPU of its local rank."""
    if device == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if device == "cuda" else "gloo", **where)


@contextmanager
def torchrun_group(device: str) -> Iterator[None]:
    """Join the group of the processes that torchrun started."""
    join_group(device, init_method="env://")
    try:
        yield
    finally:
        dist.destroy_process_group()


def under_torchrun() -> bool:
    """Return whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def world_size() -> int:
    """Return the number of processes that torchrun started on all machines."""
    return int(os.environ["WORLD_SIZE"])


def shared_output(out: StrPath | None, workers: int | None = None) -> Path:
    """Return ``out`` under torchrun. It is required there, and ``workers`` must not be given."""
    if workers is not None or out is None:
        raise ParameterError(
            "under torchrun, leave out workers= (--nproc-per-node and --nnodes decide) and pass out=, a folder that "
            "all workers see"
        )
    return parameters.path("out", out)
