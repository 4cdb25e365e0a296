"""The process group of the workers, and the variables of torchrun."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal, get_args

import torch
import torch.distributed as dist

from ... import parameters
from ...errors import ParameterError, TrainingError
from ...parameters import StrPath
from ...processes import continue_siblings
from ...runtime.environment import under_torchrun
from ...runtime.reporting import blames_peers

_GRACE = 2.0
"""Seconds until all ranks have noticed that they wait in vain. The connections of the first one break the others."""

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


def meet(store: dist.Store, rank: int, size: int, seconds: float) -> None:
    """Wait until all ranks have come to a store. Raise an error that names those that have not."""
    keys = [f"fastpart/here/{each}" for each in range(size)]
    store.set(keys[rank], "")
    try:
        store.wait(keys, timedelta(seconds=seconds))
    except RuntimeError as error:
        missing = [each for each in range(size) if not store.check([keys[each]])]
        continue_siblings()
        raise TrainingError(
            f"{_named(missing)}: did not come to the other ranks within {seconds:g} s. It hangs, or is gone"
        ) from error


@contextmanager
def torchrun_group(device: str, seconds: float) -> Iterator[None]:
    """Join the group of the processes that torchrun started. They wait for each other for so many seconds."""
    if (
        os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]
    ):  # all on one machine: nobody else listens
        for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(name, "lo")
    timeout = timedelta(seconds=seconds)
    store, rank, size = next(dist.rendezvous("env://", timeout=timeout))
    store = dist.PrefixStore(f"fastpart/{_restarts()}", store)  # the store may be that of ranks that died
    meet(store, rank, size, seconds)
    join_group(device, store=store, rank=rank, world_size=size, timeout=timeout)
    try:
        yield
    except RuntimeError as error:
        if blames_peers(error) and (silent := _silent()):
            continue_siblings()
            raise TrainingError(
                f"{_named(silent)}: no answer to the other ranks. It hangs, or is gone ({error})"
            ) from error
        raise
    finally:
        dist.destroy_process_group()


def _silent() -> list[int]:
    """Return the ranks that do not wait in vain for another one, as this one does."""
    store = dist.distributed_c10d._get_default_store()
    try:
        store.set(f"fastpart/waited/{dist.get_rank()}", "")
        time.sleep(_GRACE)
        return [rank for rank in range(dist.get_world_size()) if not store.check([f"fastpart/waited/{rank}"])]
    except RuntimeError:  # the store is gone, too
        return []


def _named(ranks: list[int]) -> str:
    return ", ".join(f"rank {rank}" for rank in ranks)


def restarted() -> bool:
    """Return whether torchrun has started these processes again."""
    return _restarts() > 0


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))


def world_size() -> int:
    """Return the number of processes that torchrun started on all machines."""
    return int(os.environ["WORLD_SIZE"])


def number_of_workers(parts: int, asked: int | None, processors: int) -> int:
    """Return how many workers train over so many parts, at most one per part. torchrun decides about it itself."""
    if not under_torchrun():
        return min(asked or max(processors, 1), parts)
    if world_size() > parts:
        raise ParameterError(
            f"source: {parts} parts for {world_size()} processes. Start at most one process per part"
        )
    return world_size()


def shared_output(out: StrPath | None, workers: int | None = None) -> Path:
    """Return ``out`` under torchrun. It is required there, and ``workers`` must not be given."""
    if workers is not None or out is None:
        raise ParameterError(
            "under torchrun, leave out workers= (--nproc-per-node and --nnodes decide) and pass out=, a folder that "
            "all workers see"
        )
    return parameters.path("out", out)
