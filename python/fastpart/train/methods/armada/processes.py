"""The processes that are no compute workers: receivers and batch workers, on one machine or on many."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch.distributed as dist

from .... import _core
from ....errors import TrainingError
from ....runtime.environment import found
from ....runtime.watch import Supervisor
from ...ranks import from_first, rank, world_size
from .batch_worker import RECEIVERS
from .rendezvous import address_of
from .settings import Settings

_MODULE = "fastpart.train.methods.armada"
_ENVIRONMENT = {"OMP_NUM_THREADS": "1"}

LOOPBACK = "127.0.0.1"


def started(group: Supervisor, settings: Settings) -> Path:
    """Start all processes but the compute workers on this machine. Return the file of the settings."""
    file = group.folder / "armada.json"
    settings.save(file)
    _start_batch_workers(group, file, range(settings.batch_workers))
    group.start("receiver", _MODULE, "receiver", str(file), LOOPBACK, environment=_ENVIRONMENT, serves=True)
    return file


@contextmanager
def joined(settings: Settings, tmp_dir: Path | None) -> Iterator[Path]:
    """Start a receiver on each machine of a launcher, and some batch workers. Yield the file of the settings there.

    All ranks have to call it. The first one of a machine supervises the processes there.
    """
    here, workers = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    settings = replace(settings, token=from_first(settings.token), first=rank() - here, local_workers=workers)
    if here:
        yield _meet(None)
        return
    with Supervisor(tmp_dir, settings.timeout) as group:
        file = group.folder / "armada.json"
        settings.save(file)
        group.start("receiver", _MODULE, "receiver", str(file), _address(), environment=_ENVIRONMENT)
        _meet(file, group, settings.batch_workers)
        leaving = threading.Event()
        threading.Thread(target=_watch, args=(group, leaving), daemon=True).start()
        try:
            yield file
        finally:
            leaving.set()


def _meet(file: Path | None, group: Supervisor | None = None, batch_workers: int = 0) -> Path:
    """Tell all ranks where the receivers are, and start the batch workers of this machine. Return its settings."""
    found = None if file is None else (str(file), address_of(file.parent))
    of_all: list[tuple[str, tuple[str, int]] | None] = [None] * world_size()
    dist.all_gather_object(of_all, found)
    receivers = [each[1] for each in of_all if each is not None]
    if file is None or group is None:
        mine = [each for each in of_all[: rank()] if each is not None][-1]
        return Path(mine[0])
    _core.write_file(file.parent / RECEIVERS, json.dumps({"receivers": receivers}).encode())
    machine = receivers.index(address_of(file.parent))
    _start_batch_workers(group, file, range(machine, batch_workers, len(receivers)))
    return file


def _start_batch_workers(group: Supervisor, file: Path, workers: Iterable[int]) -> None:
    for worker in workers:
        name, arguments = f"batch worker {worker}", ("batch_worker", str(file), str(worker))
        group.start(name, _MODULE, *arguments, environment=_ENVIRONMENT, serves=True, replaceable=True)


def _watch(group: Supervisor, leaving: threading.Event) -> None:
    """End this process, and so the other ranks, when the processes here fail."""
    try:
        for _ in group.messages():
            pass
    except (TrainingError, OSError, ValueError) as error:  # the last two if the group has ended
        if not leaving.is_set():
            print(error, file=sys.stderr, flush=True)
            group.__exit__(type(error), error, None)
            os._exit(1)


def _address() -> str:
    """Return the address at which other machines reach this one: that with which it reaches the first one."""
    if os.environ["LOCAL_WORLD_SIZE"] == os.environ["WORLD_SIZE"]:
        return LOOPBACK
    ranks = found()
    assert ranks is not None  # a launcher has started them
    at = ranks.address()  # a group of the user may have met elsewhere
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:  # it sends nothing
        line.connect((at["MASTER_ADDR"], int(at["MASTER_PORT"])))
        address: str = line.getsockname()[0]
        return address
