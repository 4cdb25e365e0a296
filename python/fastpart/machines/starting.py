"""What a call names as a cluster, as a place, and what a partition takes there. No work starts that could not end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from .. import _core
from ..core import parameters
from ..core.options import RunOptions
from ..core.parameters import StrPath, path, shown
from ..errors import ParameterError, arg
from ..graphs.graph import Graph
from .engine import Engine
from .partitioning import Place, predicted_messages, sample_for
from .tasks import TaskFiles


@contextmanager
def at_place(cluster: str | Engine | None, shared: StrPath | None) -> Iterator[Place | None]:
    """Yield the place that a call names. None is this machine. Tasks in a folder are those of one call at a time."""
    place = place_of(cluster, shared)
    with place.engine.alone() if place is not None and isinstance(place.engine, TaskFiles) else nullcontext():
        yield place


def place_of(cluster: str | Engine | None, shared: StrPath | None) -> Place | None:
    """Return the place that a call names. None is this machine."""
    if cluster is None:
        if shared is not None:
            raise ParameterError(f"shared: needs {arg('cluster')}")
        return None
    if shared is None:
        raise ParameterError("shared: name a folder that all machines of the cluster see")
    folder = path("shared", shared).absolute()
    if not folder.is_dir():
        raise ParameterError(f"shared: {shown(folder)} is not a folder")
    return Place(engine_of(cluster, folder), folder)


def engine_of(cluster: str | Engine, shared: Path) -> Engine:
    """Return the engine of a cluster that is fit to work.

    Parameters
    ----------
    cluster : str or Engine
        "auto" is ``RAY_ADDRESS``, or the cluster for which ``ray start`` ran on this machine last. "tasks" leaves tasks
        for ``fastpart work`` in the shared folder. Another text is the address of a head, as ``10.0.0.1:6379``. No
        cluster is ever started here.
    shared : pathlib.Path
        The folder that all nodes must see.

    Raises
    ------
    ParameterError
        There is no cluster, no processor is free, a node does not see the folder or has another fastpart, or strangers
        could connect to the cluster.
    """
    if not isinstance(cluster, str):
        if not all(callable(getattr(cluster, verb, None)) for verb in ("submit", "replicas")):
            raise TypeError(f'cluster: expected "auto" or an address, got {type(cluster).__name__}')
        return cluster
    if cluster == "tasks":
        return TaskFiles(shared)
    engine = connected(cluster)
    from . import checking

    checking.check(shared)
    return engine


def connected(cluster: str) -> Engine:
    """Return the engine of a cluster that runs, to which this process then is connected."""
    from ..graphs.ingest.tables.listing import needed  # with which much more would be imported

    needed("ray", "ray", "cluster=")
    from . import checking
    from .on_ray import RayEngine

    checking.connect(cluster)
    return RayEngine()


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
