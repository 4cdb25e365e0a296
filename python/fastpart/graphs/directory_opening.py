"""Graph directories as graphs. Their records lie in one file, or in several that a cluster reads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _core
from ..core.file_states import ends_of
from ..core.options import RunOptions
from ..core.parameters import shown
from ..errors import EdgeFileChangedError, ParameterError
from .graph import REOPENING, Graph, open_records
from .graph_directory import EDGES, GraphDirectory, file_in
from .weights import Weights


@dataclass(frozen=True)
class _Origin:
    """A directory and how it was opened, for pickles."""

    folder: str
    io: str
    weights: Any
    marks: tuple[tuple[int, str], ...]

    def reduced(self, graph: Graph) -> tuple[Any, ...]:
        """Return the function that opens the graph again, and its arguments."""
        return _reopened, (self, graph._identity)

    def arguments(self) -> dict[str, Any]:
        """Return plain arguments that open it again, without weights."""
        return {"source": self.folder, "io": self.io}


def open_directory(
    folder: Path, run: RunOptions, io: Any = "mmap", weights: Any = None, **given: Any
) -> Graph:
    """Open a graph directory, which an ingest wrote. ``given`` are further arguments of :func:`.open_records`."""
    directory = GraphDirectory(folder)
    if not directory.shards:
        if not (folder / EDGES).is_file():
            raise directory.damaged(f"an incomplete graph directory, without {EDGES}")
        graph = open_records(folder / EDGES, io=io, weights=weights, options=run, **given)
        graph.path = graph.directory = folder
        return graph
    for name, value in given.items():
        if value is not None:
            raise ParameterError(f"{name}: {shown(folder)} says it by itself. Leave it out")
    return _open_shards(directory, io, weights, run)


def _open_shards(directory: GraphDirectory, io: Any, weights: Any, run: RunOptions) -> Graph:
    folder, sidecar = directory.path, directory.sidecar
    files = [file_in(folder, name) for name in directory.shards]
    if missing := [file.name for file in files if not file.is_file()]:
        raise directory.damaged(f"an incomplete graph directory, without {missing[0]}")
    described = None
    given = weights
    if weights is None and sidecar.weights is not None:
        given, described = Weights.beside(folder / EDGES), sidecar.weights
    weighted = None if given is None or given is False else Weights.of(given)
    core = _core.EdgeSource.open_shards(
        files,
        io=io,
        num_vertices=sidecar.n,
        weights=None if weighted is None else weighted.source,
        by_relation=sidecar.typed is not None,
    )
    if core.num_edges != sidecar.m:
        raise directory.damaged(
            f"its files hold {core.num_edges:,} records, but its sidecar says {sidecar.m:,}"
        )
    if weighted is not None:
        weighted = weighted.measured(core, run)
        if described is not None:
            weighted = weighted.described(described, folder / EDGES)
    graph = Graph(core, sidecar.directedness, folder, (), weighted, sidecar.typed)
    graph.directory = folder
    graph._origin = _Origin(os.path.abspath(folder), io, weights, _marks(files))
    return graph


def _marks(files: list[Path]) -> tuple[tuple[int, str], ...]:
    return tuple((file.stat().st_mtime_ns, ends_of(file)) for file in files)


def _reopened(origin: _Origin, identity: tuple[int, str] | None) -> Graph:
    """Open the directory of a pickled graph, if its files are still the same."""
    directory = GraphDirectory(Path(origin.folder))
    if _marks([directory.path / name for name in directory.shards]) != origin.marks:
        raise EdgeFileChangedError(
            f"{shown(origin.folder)}: its files changed after the graph was pickled. Open it again by {REOPENING}"
        )
    graph = _open_shards(directory, origin.io, origin.weights, RunOptions())
    graph._identity = identity
    return graph
