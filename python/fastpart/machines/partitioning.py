"""A multilevel partition by replicas, each of which has a share of the lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from ..core.options import RunOptions
from ..core.parameters import shown
from ..errors import ParameterError
from ..graphs.graph import Graph
from .adjacency import Pieces, Shards, adjacency
from .engine import Engine, Exchange
from .job import Job

_SAMPLES = (0.25, 0.1, 0.04, 0.016)
"""Shares of the entries that the top may have, on one machine."""
_TOP = 1 << 28
"""Entries of the top, at most, if a share is small enough for that."""

_IN_MEMORY = 1 << 21
"""Records that a graph in memory may have: each task gets a copy of them, 16 MiB at most."""

_FIELDS = [name for name in dir(_core.VertexResult) if not name.startswith("_")]


@dataclass(frozen=True)
class Place:
    """Where a partition is made.

    Attributes
    ----------
    engine : Engine
        What runs it.
    shared : pathlib.Path
        A folder that all machines see.
    shards : Shards, optional
        How many shards there are. By default what fits the graph.
    """

    engine: Engine
    shared: Path
    shards: Shards | None = None


def sample_for(graph: Graph) -> float:
    """Return the share of the entries that the top has on a cluster. It depends on the size of the graph only."""
    entries = 2 * graph.num_edges
    return next((share for share in _SAMPLES if entries * share <= _TOP), _SAMPLES[-1])


def partition_on(
    place: Place, graph: Graph, k: int, values: Mapping[str, Any], options: RunOptions
) -> _core.VertexResult:
    """Return the multilevel partition with these values, which one machine makes with ``path="two_levels"``, too."""
    if graph._weights is not None:
        raise ParameterError(
            "cluster: weights of records are for one machine. Open the graph with weights=False, or leave cluster out"
        )
    if graph.path is None and graph.num_edges > _IN_MEMORY:
        raise ParameterError(
            f"graph: its {graph.num_edges:,} records are in memory, and every task of a cluster would get a copy. "
            'Write them to a file that all machines see, as by np.save("g.npy", records), and pass its path'
        )
    names = {name: _named(value) for name, value in values.items()}
    identity = {"k": k, "graph": _source(graph), "values": names, "version": _core.__version__}
    quiet = replace(options, progress=None)
    symmetric = graph.directedness == "symmetric"
    with Job(place.shared, identity) as job:
        pieces = adjacency(place.engine, job, graph, place.shards or Shards.of(graph), quiet)
        facts = place.engine.replicas(_Replica(dict(values), k, pieces, symmetric, job.folder, quiet))
        job.remove()
    return _core.VertexResult(**facts)


@dataclass(frozen=True)
class _Replica:
    """What each replica of a partition does."""

    values: dict[str, Any]
    k: int
    pieces: Pieces
    symmetric: bool
    folder: Path
    options: RunOptions

    def __call__(self, number: int, count: int, exchange: Exchange) -> dict[str, Any] | None:
        """Return the facts of the result, in the first replica."""
        moved = {"sent": 0, "received": 0}

        def counted(message: bytes) -> list[bytes]:
            messages = exchange(message)
            moved["sent"] += len(message)
            moved["received"] += sum(map(len, messages)) - len(message)
            return messages

        # The first replica keeps the checkpoints. The job has a lock. One on them may be held by a replica that was
        # taken for dead.
        steps = self.folder / "steps"
        if number == 0:
            (steps / "checkpoint.lock").unlink(missing_ok=True)
        values = self.values | {"checkpoints": str(steps) if number == 0 else None}
        result = _core.partition_replica(
            values,
            k=self.k,
            pieces=self.pieces.rows,
            identity=self.pieces.identity,
            symmetric=self.symmetric,
            number=number,
            count=count,
            exchange=counted,
            folder=self.folder,
            options=self.options,
        )
        if number:
            return None
        facts = {name: getattr(result, name) for name in _FIELDS}
        return facts | {
            "graph": self.pieces.identity,
            "assignment": np.array(result.assignment),
            "costs": result.costs | {"messages": moved["sent"] + moved["received"]},
        }


def _source(graph: Graph) -> list[Any]:
    """Return what tells a graph from others, without reading it where it lies in files."""
    known: list[Any] = [graph.num_vertices, graph.num_edges, graph.directedness]
    if graph.path is None:
        return [*known, *graph.identify()]
    files = sorted(graph.path.rglob("*")) if graph.path.is_dir() else [graph.path]
    stats = [(shown(file), file.stat()) for file in files if file.is_file()]
    return [*known, *((name, stat.st_size, stat.st_mtime_ns) for name, stat in stats)]


def _named(value: Any) -> Any:
    """Return a value as JSON has it. An array is named by its hash."""
    if isinstance(value, np.ndarray):
        return f"array {value.dtype} {value.shape} {_core.hash_bytes(np.ascontiguousarray(value).tobytes())}"
    return [_named(each) for each in value] if isinstance(value, list | tuple) else value
