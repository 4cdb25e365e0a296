"""What a partition on a cluster takes, said before it is made."""

from __future__ import annotations

from typing import Any

from .. import _core
from ..core import parameters
from ..core.options import RunOptions
from ..graphs.graph import Graph
from .partitioning import predicted_messages, sample_for
from .starting import connected

_SHARED = (24, 48)
"""Bytes in the shared folder at most: of each entry of the adjacency, and of each vertex."""
_MOST = 1 << 16
"""Machines at most."""


def costs(
    graph: Graph,
    k: int,
    volume_balance: float | None,
    cluster: int | str,
    vertices: int,
    plans: list[dict[str, Any]],
    limits: RunOptions,
) -> dict[str, Any]:
    """Return what ``multilevel`` takes on a cluster, and whether this machine is enough.

    Parameters
    ----------
    graph : Graph
        The graph.
    k : int
        Number of parts.
    volume_balance : float, optional
        The bound on the volumes of the parts.
    cluster : int or str
        A number of machines, or a cluster that runs, as :func:`~.starting.connected` takes it.
    vertices : int
        Vertices that have neighbours.
    plans : list of dict
        What the partition takes on one machine, as :func:`fastpart.info` returns it.
    limits : RunOptions
        The memory limit of this machine.
    """
    workers = connected(cluster).workers if isinstance(cluster, str) else None
    workers = parameters.integer("cluster", cluster, 1, _MOST) if workers is None else workers
    n, m = graph.num_vertices, graph.num_edges
    entries = m if graph.directedness == "symmetric" else 2 * m
    sample = sample_for(graph)
    limit = limits.memory_limit or _core.memory_budget()
    here = [plan for plan in plans if plan["memory"] <= limit]
    return {
        "machines": workers,
        "sample": sample,
        "memory": _core.replica_memory(n, entries, k, sample, volume_balance),
        "shared": _SHARED[0] * entries + _SHARED[1] * n,
        "messages": predicted_messages(vertices, k, workers),
        "one_machine": here[-1] if here else None,
    }
