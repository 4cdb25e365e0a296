"""The adjacency of a graph, made by tasks: counts, scattered entries, and lists by shard of the vertices."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from .. import _core
from ..core.folders import within
from ..core.options import RunOptions
from ..core.parameters import shown
from ..core.parsing import Count, json_object
from ..errors import GraphFormatError
from ..graphs.graph import Graph
from .engine import Engine
from .job import ANEW, Job, read_checked, write_checked

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


_FIELDS = {"pieces": list[tuple[str, Count, Count, Count]], "identity": tuple[Count, Count, Count, str]}
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
        content = json_object(table, read_checked(table), _FIELDS, ANEW)
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
