"""Ranks, as torchrun, Slurm or MPI start them, but as copies of a process that has imported torch already."""

import os
import secrets
import signal
import socket
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from types import ModuleType
from typing import NamedTuple

from fastpart.runtime.launch import begin, environment_of, send_signal

LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "TORCHELASTIC_", "SLURM_", "OMPI_", "PMI_", "MV2_")
"""Beginnings of the variables by which launchers tell a process that it is one of several."""


class Ended(NamedTuple):
    """What a rank printed, and how it ended."""

    out: str
    errors: str
    code: int


def of_torchrun(rank, size=2, machines=1):
    """Return the variables of torchrun for a rank of so many, on one machine or on several."""
    here = size // machines
    own = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank % here, "LOCAL_WORLD_SIZE": here}
    return {"TORCHELASTIC_RUN_ID": "x", **{name: str(value) for name, value in own.items()}}


def free_port():
    """Return a port below those that the system gives to connections: one of these could take it before the rank."""
    while True:
        port = secrets.choice(range(20_000, 32_000))
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


def run_code(code, *words, **how):
    """Run Python code in each rank, with ``sys.argv[1:]``. The rest is as in :func:`run_ranks`."""
    return run_ranks("ranks", code, *words, **how)


def run_alone(module, *words):
    """Run ``python -m module words`` where there is no launcher. Return how it ended."""
    (ended,) = run_ranks(module, *words, variables=lambda rank: {}, size=1)
    return ended


def run_ranks(module, *words, variables=of_torchrun, size=2, timeout=150):
    """Run ``python -m module words`` in each rank, with ``variables(rank)`` of its own. Return how each ended."""
    common = {"GLOO_SOCKET_IFNAME": "lo", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    inherited = {
        name: text for name, text in environment_of({}).items() if not name.startswith(LAUNCHERS)
    } | common
    with ExitStack() as stack:
        nothing = stack.enter_context(open(os.devnull, "w")).fileno()  # where their reports go
        files = [
            [stack.enter_context(tempfile.TemporaryFile()).fileno() for _ in range(2)] for _ in range(size)
        ]
        ranks = []
        for rank, said in enumerate(files):
            environment = inherited | variables(rank)
            ranks.append(begin(module, [str(word) for word in words], environment, [*said, nothing], True))
        end = time.monotonic() + timeout
        while time.monotonic() < end and any(rank.status() is None for rank in ranks):
            time.sleep(0.01)
        for rank in ranks:
            send_signal(rank, signal.SIGKILL)
        return [
            Ended(*(os.pread(file, 1 << 24, 0).decode() for file in said), rank.reap())
            for rank, said in zip(ranks, files, strict=True)
        ]


if __name__ == "__main__":
    # As ``python -c`` does: code whose module has no file.
    main = sys.modules["__main__"] = ModuleType("__main__")
    exec(compile(sys.argv.pop(1), "<string>", "exec"), vars(main))
