"""Several machines of DistDGL on one.

DGL takes for granted that a machine is an address, a /dev/shm and a part. On one machine two parts would take each
other's shared memory and answer to the same number. Here each process is told its machine, and each machine prefixes
its names in shared memory. Nothing of it is needed, or done, where DGL runs on several machines.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

RUN, MACHINE = "FASTPART_RUN", "FASTPART_MACHINE"
"""Variables of the environment: name of the run, and number of the machine that this process is on."""

LOOPBACK = "127.0.0.1"

_LISTEN = "0A"


def install() -> None:
    """Make this process one of a local machine, if the environment says so; before DGL is initialized."""
    if RUN not in os.environ:
        return
    import multiprocessing

    import dgl
    from dgl import heterograph_index
    from dgl.distributed import (
        dist_graph,
        graph_partition_book,
        kvstore,
        rpc,
        rpc_client,
        rpc_server,
        shared_mem_utils,
    )

    run, machine = os.environ[RUN], int(os.environ[MACHINE])
    prefix = f"{run}-{machine}-"
    rpc_client.get_local_machine_id = lambda namebook: machine
    for module in (dist_graph, graph_partition_book, kvstore, shared_mem_utils):
        for name in ("empty_shared_mem", "exist_shared_mem_array"):
            if hasattr(module, name):
                setattr(module, name, _prefixed(getattr(module, name), 0, prefix))
    dgl.DGLGraph.shared_memory = _prefixed(dgl.DGLGraph.shared_memory, 1, prefix)
    heterograph_index.create_heterograph_from_shared_memory = _prefixed(
        heterograph_index.create_heterograph_from_shared_memory, 0, prefix
    )
    # The locks between a trainer and its samplers are in shared memory, too.
    multiprocessing.current_process()._config["semprefix"] = f"/{run}-"  # type: ignore[attr-defined]
    _connect_at_once(rpc, rpc_server)
    rpc_client.get_local_usable_addr = _local_address


def _prefixed(function: Callable[..., Any], position: int, prefix: str) -> Callable[..., Any]:
    """Return a function that puts the prefix before the name that it is given."""

    def with_prefix(*arguments: Any, **named: Any) -> Any:
        before, name, after = arguments[:position], arguments[position], arguments[position + 1 :]
        slash = "/" if name.startswith("/") else ""
        return function(*before, slash + prefix + name.removeprefix("/"), *after, **named)

    return with_prefix


def _connect_at_once(rpc: Any, rpc_server: Any) -> None:
    """Connect when the other side listens; DGL tries, and sleeps for seconds in between."""
    connect = rpc.connect_receiver

    def connect_when_ready(address: str, port: int, *arguments: Any, **named: Any) -> Any:
        while (address, int(port)) not in listening():
            time.sleep(0.01)
        return connect(address, port, *arguments, **named)

    rpc.connect_receiver = connect_when_ready
    rpc_server.time = SimpleNamespace(sleep=lambda seconds: None)


def _local_address(probe: str) -> str:
    """Return where this process may listen; DGL looks for a free port on all interfaces, listening there."""
    import socket

    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        return f"{LOOPBACK}:{free.getsockname()[1]}"


def listening() -> set[tuple[str, int]]:
    """Return the IPv4 addresses and ports on which somebody listens."""
    found = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        if state == _LISTEN:
            address, port = local.split(":")
            octets = bytes.fromhex(address)[::-1]
            found.add((".".join(map(str, octets)), int(port, 16)))
    return found
