"""Where the processes of a training come from, and how they form a group.

They are started on this machine, are those of a launcher, or are the one of the user.
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.distributed as dist

from ... import _core
from ...core import parameters
from ...core.outputs import Owner, owning
from ...core.parameters import StrPath
from ...core.system import continue_siblings
from ...errors import FastpartError, ParameterError, TrainingError, arg
from ...runtime.environment import TORCHRUN, Ranks, found, variables
from ...runtime.reporting import blames_peers
from ...runtime.watch import Supervisor
from ..options import TrainOptions
from ..plugged import in_notebook
from ..ranks import barrier, from_first, is_first
from ..runs.run_folder import MODEL, SCRATCH, RunFolder

_GRACE = 2.0
"""Seconds until all ranks have noticed that they wait in vain. The connections of the first one break the others."""


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


_trainings = count()
"""The trainings of this process. All ranks begin them in the same order."""

_stores: dict[tuple[str, str], dist.Store] = {}
"""The store at each address where this process has met others.

It stays for the next training: a rank may come there before rank 0, which holds the store, has left the last one.
"""


@contextmanager
def joined(ranks: Ranks, device: str, seconds: float) -> Iterator[None]:
    """Join the group of processes that were started together. They wait for each other for so many seconds.

    A group that the user has initialised is used, with its own timeout, and stays.
    """
    with variables({} if ranks.in_group else ranks.address()), _stores_until_an_error():
        store = _met(ranks, device, seconds)
        ranks = _located(ranks, store)
        refuse_few_gpus(device, ranks.local_size or 1)
        with variables(ranks.place()):
            if not ranks.in_group:
                _make_group(ranks, store, device, seconds)
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
                if not ranks.in_group:
                    dist.destroy_process_group()


@contextmanager
def _stores_until_an_error() -> Iterator[None]:
    """Let the next training meet anew after an error."""
    try:
        yield
    except BaseException:
        _stores.clear()
        raise


def _met(ranks: Ranks, device: str, seconds: float) -> dist.Store:
    """Return the store at which all ranks of this training have met."""
    prefix = f"fastpart/{_restarts()}/{next(_trainings)}"
    if ranks.in_group:
        _refuse_backend(device)
        return dist.PrefixStore(prefix, dist.distributed_c10d._get_default_store())
    store = dist.PrefixStore(prefix, _store(ranks, seconds))  # the store may be that of ranks that died
    meet(store, ranks.rank, ranks.size, seconds)
    return store


def _store(ranks: Ranks, seconds: float) -> dist.Store:
    """Return the store of the address at which the ranks meet."""
    address, timeout = (os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]), timedelta(seconds=seconds)
    if address not in _stores:
        _stores[address], _, _ = next(dist.rendezvous("env://", ranks.rank, ranks.size, timeout=timeout))
    _stores[address].set_timeout(timeout)
    return _stores[address]


def _make_group(ranks: Ranks, store: dist.Store, device: str, seconds: float) -> None:
    """Make the group of the ranks. Where all are on one machine, nobody else listens."""
    if ranks.local_size == ranks.size:
        for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(name, "lo")
    timeout = timedelta(seconds=seconds)
    join_group(device, store=store, rank=ranks.rank, world_size=ranks.size, timeout=timeout)


def _refuse_backend(device: str) -> None:
    """Refuse a group of the user that cannot send what workers send."""
    backends = str(dist.get_backend_config())
    if "cpu:gloo" not in backends or ("cuda:nccl" in backends) != (device == "cuda"):
        needed = "cpu:gloo,cuda:nccl" if device == "cuda" else "gloo"
        raise ParameterError(
            f"device: {device!r} needs the backend {needed!r}, but this process has joined a group with {backends}. "
            f"Make it by init_process_group({needed!r}), or leave that out"
        )


def _located(ranks: Ranks, store: dist.Store) -> Ranks:
    """Return the ranks with the place of this process on its machine. All of them tell where they are."""
    if ranks.local_rank is not None:
        return ranks
    store.set(f"machine/{ranks.rank}", socket.gethostname())
    machines = [store.get(f"machine/{rank}") for rank in range(ranks.size)]
    here = machines[ranks.rank]
    return replace(ranks, local_rank=machines[: ranks.rank].count(here), local_size=machines.count(here))


def _silent() -> list[int]:
    """Return the ranks that do not wait in vain for another one, as this one does."""
    try:
        store = dist.distributed_c10d._get_default_store()
        store.set(f"fastpart/waited/{dist.get_rank()}", "")
        time.sleep(_GRACE)
        return [rank for rank in range(dist.get_world_size()) if not store.check([f"fastpart/waited/{rank}"])]
    except (RuntimeError, ValueError):  # the store is gone, too, or the group
        return []


def _named(ranks: list[int]) -> str:
    return ", ".join(f"rank {rank}" for rank in ranks)


def restarted() -> bool:
    """Return whether torchrun has started these processes again."""
    return _restarts() > 0


def _restarts() -> int:
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", 0))


def number_of_workers(parts: int, asked: int | None, options: TrainOptions) -> int:
    """Return how many workers train over so many parts, at most one per part. A launcher decides about it itself."""
    if (ranks := found()) is None:
        processors = options.threads or _core.default_threads()
        if options.device == "cuda":
            processors = torch.cuda.device_count()
        return min(asked or max(processors, 1), parts)
    if ranks.size > parts:
        raise ParameterError(
            f"source: {parts} parts for {ranks.size} processes. Start at most one process per part"
        )
    return ranks.size


def shared_output(ranks: Ranks, out: StrPath | None, workers: int | None = None) -> Path:
    """Return ``out`` under a launcher. It is required there, and ``workers`` must not be given."""
    if workers is not None or out is None:
        decides = (
            "--nproc-per-node and --nnodes decide" if ranks.launcher == TORCHRUN else "it has started them"
        )
        raise ParameterError(
            f"under {ranks.launcher}, leave out {arg('workers')} ({decides}) and pass {arg('out')}, a folder that all "
            "workers see"
        )
    return parameters.path("out", out)


def output_of(temporary: Path, options: TrainOptions) -> RunFolder:
    """Return the folder of the history: that of the user, or one in a temporary folder."""
    if options.out is not None:
        return RunFolder.claim(options.out, options.resume, options.overwrite)
    if options.resume:
        raise ParameterError(f"resume: needs {arg('out')}, the folder to resume from")
    if options.overwrite:
        raise ParameterError(f"overwrite: needs {arg('out')}, the folder to replace")
    folder = RunFolder(temporary / "output", temporary=True)
    folder.path.mkdir()
    return folder


Result = TypeVar("Result")


@dataclass(frozen=True)
class Launch:
    """Where the processes of a training are.

    Attributes
    ----------
    folder : RunFolder
        The folder of the history.
    resume : bool
        Whether to continue from the checkpoint there.
    group : Supervisor or None
        The supervisor that starts the workers. None: this process trains.
    scratch : pathlib.Path
        A folder for temporary files that all workers see.
    joined : bool
        Whether this process trains together with those of a launcher.
    """

    folder: RunFolder
    resume: bool
    group: Supervisor | None
    scratch: Path
    joined: bool = False

    def once(self, make: Callable[[], Result]) -> Result:
        """Return what ``make`` returns in the process of the user, or in rank 0."""
        return _agreed(make) if self.joined else make()

    def importable(self, options: TrainOptions) -> TrainOptions:
        """Return options whose model the workers can import. That of a notebook goes to a file."""
        if not in_notebook(options.model):
            return options
        self.folder.add([MODEL])
        options = options.importable(self.folder.path)
        self.folder.update(options=options.stored())
        return options


@contextmanager
def launching(options: TrainOptions, workers: int | None, alone: bool) -> Iterator[Launch]:
    """Yield where the processes are: only this one if it trains ``alone``.

    A launcher decides about ``workers``, the number that the user asked for, itself.
    """
    if not alone and (ranks := found()) is not None:
        with _joined(options, ranks, workers) as launch:
            yield launch
        return
    out = None if options.out is None else parameters.path("out", options.out)
    with owning(out=out), _alone(options) if alone else _started(options) as launch:
        yield launch


@contextmanager
def _alone(options: TrainOptions) -> Iterator[Launch]:
    """Yield this process."""
    refuse_few_gpus(options.device, 1)
    with tempfile.TemporaryDirectory(prefix="fastpart-", dir=options.tmp_dir) as scratch:
        folder = output_of(Path(scratch), options)
        yield Launch(folder, options.resume, None, Path(scratch))


@contextmanager
def _started(options: TrainOptions) -> Iterator[Launch]:
    """Yield processes that are going to be started on this machine."""
    with Supervisor(options.tmp_dir, options.timeout) as group:
        yield Launch(output_of(group.folder, options), options.resume, group, group.folder)


@contextmanager
def _joined(options: TrainOptions, ranks: Ranks, workers: int | None) -> Iterator[Launch]:
    """Yield the processes of a launcher. The first of them owns the folder."""
    path = shared_output(ranks, options.out, workers)
    resume, overwrite = options.resume or restarted(), options.overwrite and not restarted()
    with joined(ranks, options.device, options.timeout), ExitStack() as stack:

        def claim() -> RunFolder:
            stack.enter_context(Owner(path))
            return RunFolder.claim(path, resume, overwrite)

        folder = _agreed(claim)
        with folder.scratch() if is_first() else nullcontext():
            yield Launch(folder, resume, None, folder.path.absolute() / SCRATCH, True)
            barrier()  # no rank leaves while another one needs it


def _agreed(make: Callable[[], Result]) -> Result:
    """Return what ``make`` returns in rank 0. What it refuses, all ranks refuse: else they would wait for rank 0."""
    made: Result | None = None
    refusal: Exception | None = None
    if is_first():
        try:
            made = make()
        except (FastpartError, OSError) as error:
            refusal = error
    made, refusal = from_first((made, refusal))
    if refusal is not None:
        raise refusal
    return made
