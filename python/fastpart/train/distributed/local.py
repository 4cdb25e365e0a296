"""Several machines of DistDGL on one.

DGL takes for granted that a machine is an address, a /dev/shm and a part. On one machine two parts would take each
other's shared memory and answer to the same number. Here each process is told its machine, and each machine prefixes
its names in shared memory. Nothing of it is needed, or done, where DGL runs on several machines.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ..reporting import RUN
from ..traces import SHARED_MEMORY

MACHINE = "FASTPART_MACHINE"
"""Variable of the environment: the number of the machine that this process is to be on."""

LOOPBACK = "127.0.0.1"

_LISTEN = "0A"


def install() -> None:
    """Make this process one of a local machine, if the environment says so; before DGL is initialized."""
    if MACHINE not in os.environ:
        return
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

    machine = int(os.environ[MACHINE])
    prefix = f"{os.environ[RUN]}-{machine}-"
    rpc_client.get_local_machine_id = lambda namebook: machine
    for module in (dist_graph, graph_partition_book, kvstore, shared_mem_utils):
        module.empty_shared_mem = _prefixed(_unless_empty(module.empty_shared_mem), prefix)
    for module in (dist_graph, graph_partition_book):
        module.exist_shared_mem_array = _prefixed(module.exist_shared_mem_array, prefix)
    _share_graphs(dgl, heterograph_index, prefix)
    _connect_at_once(rpc, rpc_server)
    rpc_client.get_local_usable_addr = _local_address


def _prefixed(function: Callable[..., Any], prefix: str) -> Callable[..., Any]:
    """Return a function that puts the prefix before the name that it is given."""

    def with_prefix(name: str, *arguments: Any) -> Any:
        slash = "/" if name.startswith("/") else ""
        return function(slash + prefix + name.removeprefix("/"), *arguments)

    return with_prefix


def _unless_empty(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that shares an array, except if it has no elements: those cannot be mapped."""

    def share(name: str, create: bool, shape: Sequence[int], dtype: str) -> Any:
        from dgl import ndarray

        return function(name, create, shape, dtype) if all(shape) else ndarray.empty(shape, dtype)

    return share


def _share_graphs(dgl: Any, index: Any, prefix: str) -> None:
    """Share graphs under prefixed names; of one without edges, which cannot be mapped, only the vertices are shared."""
    share, find = dgl.DGLGraph.shared_memory, index.create_heterograph_from_shared_memory

    def sized(name: str) -> Path:
        return SHARED_MEMORY / f"{prefix}{name}-vertices"

    def shared_memory(graph: Any, name: str, formats: Any) -> Any:
        if graph.num_edges():
            return share(graph, prefix + name, formats)
        sized(name).write_text(str(graph.num_nodes()))
        return graph

    def from_shared_memory(name: str) -> Any:
        if not sized(name).exists():
            return find(prefix + name)
        graph = dgl.graph(([], []), num_nodes=int(sized(name).read_text()), idtype=dgl.backend.int64)
        return graph._graph, graph.ntypes, graph.etypes

    dgl.DGLGraph.shared_memory = shared_memory
    index.create_heterograph_from_shared_memory = from_shared_memory


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
