"""A multilevel partition by replicas, each with a share of the lists of neighbours, which tasks make by shard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from .. import _core
from ..core.folders import within
from ..core.options import RunOptions
from ..core.parameters import shown
from ..core.parsing import Count, json_object
from ..errors import GraphFormatError, ParameterError, arg
from ..graphs.graph import Graph
from .engine import Engine, Exchange
from .job import ANEW, Job, name_of, read_checked, source_of, write_checked

_RECORDS = 1 << 24
"""Records of a shard."""
_ENTRIES = 1 << 22
"""Entries of a shard of the vertices, unless there would be too many shards."""
_MOST = 4096
"""Shards at most."""

Identity = tuple[int, int, int, str]
"""Vertices, records, loops and checksum of a graph."""


@dataclass(frozen=True)
class Shards:
    """How many shards a job has. The result does not depend on it.

    Attributes
    ----------
    records, vertices : int
        Shards of the records and of the vertices, at most.
    """

    records: int
    vertices: int

    @classmethod
    def of(cls, graph: Graph) -> Shards:
        """Return what fits the size of a graph."""
        m = graph.num_edges
        entries = m if graph.directedness == "symmetric" else 2 * m
        return cls(_between(m // _RECORDS), _between(entries // _ENTRIES))


def _between(count: int) -> int:
    return min(max(count, 1), _MOST)


_ADJACENCY_FIELDS = {
    "pieces": list[tuple[str, Count, Count, Count]],
    "identity": tuple[Count, Count, Count, str],
}
"""The fields of the table of pieces."""


@dataclass(frozen=True)
class Pieces:
    """The lists of a graph, in files.

    Attributes
    ----------
    identity : tuple
        Vertices, records, loops and checksum of the graph.
    rows : list of tuple
        For each file its path, its first vertex, the end of its vertices, and its entries.
    """

    identity: Identity
    rows: list[tuple[Path, int, int, int]]


def adjacency(engine: Engine, job: Job, graph: Graph, shards: Shards, options: RunOptions) -> Pieces:
    """Return the lists of a graph. They are made by tasks, unless they are there."""
    table = job.path / "pieces.bin"
    if table.is_file():
        content = json_object(table, read_checked(table), _ADJACENCY_FIELDS, ANEW)
        where = f"folder of {shown(table)}, which lists it"
        rows = [(within(job.path, name, where), *numbers) for name, *numbers in content["pieces"]]
        n, m, loops, checksum = content["identity"]
        firsts, ends = [first for _, first, *_ in rows], [end for _, _, end, _ in rows]
        if (n, m) != (graph.num_vertices, graph.num_edges) or [*firsts, n] != [0, *ends]:
            raise GraphFormatError(f"{shown(table)}: pieces of another graph. {ANEW}")
        if all(path.is_file() for path, *_ in rows):
            if any(_core.entries_of_piece(path) != entries for path, *_, entries in rows):
                raise GraphFormatError(
                    f"{shown(table)}: other numbers of entries than the pieces have. {ANEW}"
                )
            return Pieces((n, m, loops, checksum), rows)
    options = replace(options, threads=1)  # a task has one processor
    n, m = graph.num_vertices, graph.num_edges
    symmetric = graph.directedness == "symmetric"
    ranges = _core.shards_of_records(m, shards.records)
    counting = {f"counts-{i}.bin": (graph, shard, symmetric, options) for i, shard in enumerate(ranges)}
    counts = job.stage(engine, "counts", counting, count)
    all_counts = [read_checked(path) for path in counts]
    identity, starts = _core.cut_shards(all_counts, n, m, shards.vertices)
    cuts = [m * i // shards.records for i in range(shards.records + 1)]
    scattering = {
        _scattered(i): (graph, (cuts[i], cuts[i + 1]), symmetric, starts, options)
        for i in range(shards.records)
    }
    scattered = job.stage(engine, "scattered", scattering, scatter)
    vertices = list(pairwise(starts))
    gathering: dict[str, tuple[Any, ...]] = {
        f"shard-{s}.bin": (job.path, len(scattered), s, of_shard, identity, options)
        for s, of_shard in enumerate(vertices)
    }
    paths = job.stage(engine, "shards", gathering, gather)
    entries = [_core.entries_of_piece(path) for path in paths]
    rows = [(path, *of_shard, count) for path, of_shard, count in zip(paths, vertices, entries, strict=True)]
    content = {"identity": identity, "pieces": [(path.name, *numbers) for path, *numbers in rows]}
    write_checked(table, json.dumps(content).encode())
    job.forget([*counts, *scattered])
    return Pieces(identity, rows)


def _scattered(number: int) -> str:
    return f"scattered-{number}.bin"


def count(graph: Graph, shard: tuple[int, int], symmetric: bool, options: RunOptions, into: Path) -> None:
    """Write what is known of a shard of the records."""
    write_checked(into, _core.count_shard(graph._source, shard, symmetric, options))


def scatter(
    graph: Graph,
    shard: tuple[int, int],
    symmetric: bool,
    starts: list[int],
    options: RunOptions,
    into: Path,
) -> None:
    """Write the entries of a shard of the records, by shard of the vertices."""
    _core.scatter_shard(graph._source, shard, symmetric, starts, into, options)


def gather(
    folder: Path,
    count: int,
    shard: int,
    vertices: tuple[int, int],
    identity: Identity,
    options: RunOptions,
    into: Path,
) -> None:
    """Write the lists of a shard of the vertices, from so many files of scattered entries in a folder."""
    sources = [folder / _scattered(number) for number in range(count)]
    _core.gather_shard(sources, shard, vertices, identity, into, options)


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
