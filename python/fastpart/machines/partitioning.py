"""A multilevel partition by replicas, each of which has a share of the lists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from ..core.options import RunOptions
from ..errors import ParameterError, arg
from ..graphs.graph import Graph
from .adjacency import Pieces, Shards, adjacency
from .engine import Engine, Exchange
from .job import Job, name_of, source_of

_SAMPLES = (0.25, 0.1, 0.04, 0.016)
"""Shares of the entries that the top may have, on one machine."""
_TOP = 1 << 28
"""Entries of the top, at most, if a share is small enough for that."""


_SENT = 105
_SENT_OF_PART = 2000
"""Bytes that the replicas send: of each vertex that has neighbours, and of each part from each replica."""

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


def predicted_messages(vertices: int, k: int, workers: int) -> int:
    """Return how many bytes the replicas will send each other, given how many vertices have neighbours.

    Nearly all of it are targets of vertices that changed, in 3 rounds of clustering and 8 of refinement on each of two
    levels, so neither entries nor machines count for much. With planted and R-MAT graphs, n = 2**20, m = 2**24, 16 to
    64 parts and 4 replicas it was off by at most 14 %. Where refinement ends early, since few edges have to be cut, 28
    to 45 bytes of a vertex are sent: in grids, and in graphs of roads, circuits, web pages and coauthors.
    """
    return _SENT * vertices + _SENT_OF_PART * k * workers


def partition_on(
    place: Place, graph: Graph, k: int, values: Mapping[str, Any], options: RunOptions
) -> _core.VertexResult:
    """Return the multilevel partition with these values, which one machine makes with ``path="two_levels"``, too."""
    if graph._weights is not None:
        raise ParameterError(
            f"cluster: weights of records are for one machine. Open the graph with {arg('weights', False)}, or "
            "leave cluster out"
        )
    names = {name: name_of(value) for name, value in values.items()}
    known = {"k": k, "graph": source_of(graph), "values": names, "version": _core.__version__}
    quiet = replace(options, progress=None)
    symmetric = graph.directedness == "symmetric"
    with Job(place.shared, known) as job:
        pieces = adjacency(place.engine, job, graph, place.shards or Shards.of(graph), quiet)
        facts = place.engine.replicas(_Replica(dict(values), k, pieces, symmetric, job.path, quiet))
        job.remove()
    return _core.VertexResult(**facts | {"graph": _core.Identity(*facts["graph"])})


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

        # The first replica keeps the checkpoints. One that was taken for dead may still have their lock, and the job
        # has its own.
        steps = self.folder / "steps"
        if number == 0:
            (steps / "checkpoint.lock").unlink(missing_ok=True)
        values = self.values | {"checkpoints": str(steps) if number == 0 else None}
        result, vertices = _core.partition_replica(
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
        bytes_moved = {
            "messages": moved["sent"] + moved["received"],
            "predicted_messages": predicted_messages(vertices, self.k, count),
        }
        return facts | {
            "graph": self.pieces.identity,
            "assignment": np.array(result.assignment),
            "costs": result.costs | bytes_moved,
        }
