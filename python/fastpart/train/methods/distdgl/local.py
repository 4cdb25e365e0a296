"""Several machines of DistDGL on one.

DGL assumes that a machine has one address, one /dev/shm and one part. On one machine two parts would use the same names
in shared memory and the same machine id. Here each process gets the number of its machine, and each machine prefixes
its names in shared memory. Nothing is patched when DGL runs on several machines.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ....runtime.launch import SHARED_MEMORY
from ....runtime.reporting import RUN

MACHINE = "FASTPART_MACHINE"
"""Environment variable with the number of the machine that this process belongs to."""

LOOPBACK = "127.0.0.1"

_LISTEN = "0A"


def install() -> None:
    """Make this process part of a local machine, if the environment names one. Call this before DGL is initialized."""
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
    """Return the function with a prefix before its argument ``name``."""

    def with_prefix(name: str, *arguments: Any) -> Any:
        slash = "/" if name.startswith("/") else ""
        return function(slash + prefix + name.removeprefix("/"), *arguments)

    return with_prefix


def _unless_empty(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that shares an array, but keep empty arrays private: they cannot be mapped."""

    def share(name: str, create: bool, shape: Sequence[int], dtype: str) -> Any:
        from dgl import ndarray

        return function(name, create, shape, dtype) if all(shape) else ndarray.empty(shape, dtype)

    return share


def _share_graphs(dgl: Any, index: Any, prefix: str) -> None:
    """Share graphs under prefixed names. Of a graph without edges, which cannot be mapped, share the size only."""
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
    """Connect as soon as the other side listens. DGL would sleep for seconds between attempts."""
    connect = rpc.connect_receiver

    def connect_when_ready(address: str, port: int, *arguments: Any, **named: Any) -> Any:
        while (address, int(port)) not in listening():
            time.sleep(0.01)
        return connect(address, port, *arguments, **named)

    rpc.connect_receiver = connect_when_ready
    rpc_server.time = SimpleNamespace(sleep=lambda seconds: None)


def _local_address(probe: str) -> str:
    """Return a free port of the loopback interface. DGL would listen on all interfaces."""
    import socket

    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        return f"{LOOPBACK}:{free.getsockname()[1]}"


def listening() -> set[tuple[str, int]]:
    """Return the IPv4 addresses and ports on which some process listens."""
    listeners = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, local, _, state, *_ = line.split()
        if state == _LISTEN:
            address, port = local.split(":")
            octets = bytes.fromhex(address)[::-1]
            listeners.add((".".join(map(str, octets)), int(port, 16)))
    return listeners
