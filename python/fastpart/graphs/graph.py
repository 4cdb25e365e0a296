"""Graphs: files and arrays of edge records as one type that every function reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Unpack, cast

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.folders import content_of
from ..core.ids import IdTable
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.parameters import Directedness, IdType, choice, shown
from ..core.protocols import facts
from ..core.system import ends_of
from ..errors import (
    EdgeFileChangedError,
    GraphFormatError,
    GraphWarning,
    ParameterError,
    arg,
    code,
    plain,
    warn,
)
from .graph_directory import EDGES, MARKER, GraphDirectory, file_in, id_tables
from .sidecars import RECORD_BYTES, Sidecar, weights_beside
from .sources import Arguments, Columns, as_ids, of_memory
from .types import Relation, TypedRanges, VertexType
from .weights import Weights, by_relation, checked_relation_weights

REOPENING = code("fp.open_graph", "the same command")
"""What opens a graph again whose file changed."""


class Graph:
    """A graph as a sequence of edge records, read block by block from a file or an array.

    :func:`open_graph` returns it. A file stays open (and mapped, with ``io="mmap"``) while the object lives. Do not
    change or truncate the file during that time. You may delete it, or replace it by a rename.

    Attributes
    ----------
    num_vertices : int
        Number of vertices n. Ids are ``0..n-1``.
    num_edges : int
        Number of records m, loops included.
    directedness : {"undirected", "symmetric", "directed"}
        Meaning of a record for training. Partitioning treats all three alike.
    path : pathlib.Path or None
        The file or folder that was given. None for an array, the standard input and several files.
    directory : pathlib.Path or None
        The graph directory, which holds the ids that the vertices had in tables.
    dtype : str or None
        Type of the ids in the file.
    weights : numpy.ndarray or None
        The weight of each record (uint32, read-only), if the records are weighted.
    weight_scale : float
        By what the given weights were multiplied. 1.0 for whole numbers.
    types : tuple of VertexType or None
        The types of the vertices, if the graph has several types or relations. Each is a range of vertices.
    relations : tuple of Relation or None
        The relations of the records, if the graph has several types or relations. Each is a range of records.
    notes : tuple of str
        Assumptions about values that were not given. Each was a :class:`~fastpart.errors.GraphWarning`.
    """

    def __init__(
        self,
        source: _core.EdgeSource,
        directedness: Directedness,
        file: Path | None,
        notes: tuple[str, ...] = (),
        weights: Weights | None = None,
        typed: TypedRanges | None = None,
    ) -> None:
        self._source = source
        self._weights = weights
        self._typed = typed
        self._types_checked = False
        self._identity: tuple[int, str] | None = None
        self._expected: tuple[str, str] | None = None
        """The checksum of the records, and the text of the error if it is another one."""
        self.directedness: Directedness = directedness
        self.path = file
        self.notes = tuple(map(plain, notes))
        self._origin: Origin | None = None
        self._directory: Path | None = None
        self._id_tables: tuple[IdTable, ...] = ()
        """The ids that the vertices had in tables. None where some type has none."""
        self._folder: object = None
        """A temporary folder, which lives as long as this object."""
        for note in notes:
            warn(note, GraphWarning)

    @property
    def num_vertices(self) -> int:
        """Number of vertices."""
        return self._source.num_vertices

    @property
    def num_edges(self) -> int:
        """Number of records."""
        return self._source.num_edges

    @property
    def dtype(self) -> str | None:
        """Type of the ids in the file."""
        return self._source.dtype

    @property
    def weights(self) -> npt.NDArray[np.uint32] | None:
        """Weight of each record."""
        return None if self._weights is None else self._weights.array

    @property
    def directory(self) -> Path | None:
        """The graph directory."""
        return self._directory

    @directory.setter
    def directory(self, folder: Path | None) -> None:
        # The tables are looked up now: a later ingest may put another directory there.
        self._directory = folder
        self._id_tables = () if folder is None else id_tables(folder, self._typed, self.num_vertices)

    @property
    def types(self) -> tuple[VertexType, ...] | None:
        """Types of the vertices."""
        return None if self._typed is None else self._typed.types

    @property
    def relations(self) -> tuple[Relation, ...] | None:
        """Relations of the records."""
        return None if self._typed is None else self._typed.relations

    @property
    def _directions(self) -> list[tuple[int, int | None]] | None:
        """How the core makes directed edges of the records of each relation."""
        return None if self._typed is None else self._typed.directions

    def _with_weights(
        self, weights: npt.NDArray[np.uint32], options: RunOptions, scale: float = 1.0
    ) -> Graph:
        """Return the same records with these weights. It is as if the graph had been opened with them."""
        core = self._source.with_weights(weights)
        measured = Weights(weights, scale).measured(core, options)
        graph = Graph(core, self.directedness, self.path, (), measured, self._typed)
        graph._identity, graph._types_checked = self._identity, self._types_checked
        graph._expected = self._expected
        graph._directory, graph._id_tables, graph._folder = self._directory, self._id_tables, self._folder
        return graph

    @property
    def weight_scale(self) -> float:
        """By what the given weights were multiplied."""
        return 1.0 if self._weights is None else self._weights.scale

    def __repr__(self) -> str:
        where = f" {str(self.path)!r}" if self.path else ""
        weights = f", {self._weights}" if self._weights else ""
        typed = "" if self._typed is None else f", {self._typed}"
        return (
            f"<Graph{where}: n={self.num_vertices}, m={self.num_edges}, {self.directedness}{typed}{weights}>"
        )

    def _repr_html_(self) -> str:
        named: dict[str, Any] = {
            "vertices": self.num_vertices,
            "records": self.num_edges,
            "directedness": self.directedness,
        }
        weights = {"weights": str(self._weights).removeprefix("weights ")} if self._weights else {}
        if self._typed is not None:
            named["types"] = ", ".join(each.name for each in self._typed.types)
            named["relations"] = ", ".join(self._typed.names)
        return facts("Graph", named | weights | ({"file": shown(self.path)} if self.path else {}))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Graph):
            return NotImplemented
        same = self._sizes() == other._sizes() and self._typed == other._typed
        return self is other or (same and self.identify() == other.identify())

    def __hash__(self) -> int:
        return hash(self._sizes())

    def _sizes(self) -> tuple[object, ...]:
        weights = None if self._weights is None else (self._weights.checksum, self._weights.scale)
        return self.num_vertices, self.num_edges, self.directedness, weights

    def __reduce__(self) -> tuple[Any, ...]:
        if self._origin is None:
            return graph_of_records, (self._source.block(0, self.num_edges), self._known)
        self._check_unchanged()
        return self._origin.reduced(self)

    @property
    def _known(self) -> GraphState:
        known = self.num_vertices, self.directedness, self.notes, self._identity
        return GraphState(*known, self._weights, self._typed, self._types_checked)

    def _check_unchanged(self) -> None:
        """Raise :class:`~fastpart.errors.EdgeFileChangedError` if the file changed since it was opened."""
        self._source.check_unchanged()

    def identify(self, options: RunOptions | None = None) -> tuple[int, str]:
        """Return the number of loops and the checksum of the records, from one pass on the first call.

        The checksum is xxh3-128 of the records as little-endian u32 pairs, hashed in blocks of 8 MiB whose digests are
        hashed again. It does not depend on the container. In a typed graph the ends of all records are compared with
        the types of their relations.
        """
        self._check_unchanged()
        if self._identity is None:
            self._remember(*self._source.identify(options or RunOptions()))
        if self._typed is not None and not self._types_checked:
            self._typed.check(self._source.block, "graph" if self.path is None else shown(self.path))
            self._types_checked = True
        assert self._identity is not None
        return self._identity

    def _remember(self, loops: int, checksum: str) -> None:
        """Store loops and checksum of an earlier pass, so that :meth:`identify` does not read the graph again.

        Refuse a checksum that is not the expected one, if there is one.
        """
        if self._expected is not None and self._expected[0] != checksum:
            raise GraphFormatError(self._expected[1])
        self._identity = (loops, checksum)

    @with_options
    def degrees(self, **options: Unpack[Options]) -> npt.NDArray[np.uint32]:
        """Return the number of non-loop records that touch each vertex.

        Returns
        -------
        numpy.ndarray
            uint32, length n, read-only.

        Examples
        --------
        >>> import numpy as np, fastpart as fp
        >>> fp.open_graph(np.array([[0, 1], [1, 2], [2, 2]])).degrees()
        array([1, 2, 1], dtype=uint32)
        """
        degrees, loops, checksum = self._source.degrees(run_options(**options))
        self._remember(loops, checksum)
        return degrees


def warn_of_unread_weights(graph: Graph, name: str) -> None:
    """Warn that the function of that name counts every record once, if the records are weighted."""
    if graph._weights is not None:
        warn(
            f"{name} does not read the weights of records: each record counts once. multilevel reads them. To "
            f"leave them out, open the graph with {arg('weights', False)}",
            GraphWarning,
        )


def open_records(
    source: Path | Columns,
    given: Arguments | None = None,
    run: RunOptions | None = None,
    remedy: str | None = None,
    **named: Any,
) -> Graph:
    """Open a file of raw records, a ``.npy``, a graph directory, or columns of ids.

    The arguments are ``given``, or ``named``. With a ``remedy``, which ends errors, the records of a file have to be
    those that its sidecar describes.
    """
    given, run = given or Arguments(**named), run or RunOptions()
    if isinstance(source, Columns):
        return _open_columns(source, given, run)
    if (source / MARKER).is_file():
        return open_directory(source, run, given, remedy)
    return _open_file(source, given, run, remedy)


def open_directory(
    folder: Path, run: RunOptions, given: Arguments | None = None, remedy: str | None = None
) -> Graph:
    """Open a graph directory. Its records lie in one file, or in several that a cluster reads."""
    directory = GraphDirectory(folder)
    given = replace(given or Arguments(), dtype=None)
    if not directory.shards:
        if not (folder / EDGES).is_file():
            raise directory.damaged(f"an incomplete graph directory, without {EDGES}")
        graph = _open_file(folder / EDGES, given, run, remedy)
        graph.path = graph.directory = folder
        return graph
    for name in ("num_vertices", "directedness", "layout", "max_vertices"):
        given.refuse(name, f"{shown(folder)} says it by itself. Leave it out")
    return _open_shards(directory, given, run)


def _open_columns(columns: Columns, given: Arguments, run: RunOptions) -> Graph:
    weights = _weights_of(given.weights if columns.weights is None else columns.weights)
    with of_memory():
        core = _core.EdgeSource.columns(
            as_ids(columns.sources),
            as_ids(columns.targets),
            num_vertices=columns.num_vertices if given.num_vertices is None else given.num_vertices,
            max_vertices=given.max_vertices,
            weights=_source_of(weights),
            options=run,
        )
    notes, n, m = [], core.num_vertices, core.num_edges
    if columns.num_vertices is given.num_vertices is None and n > max(4 * m, 1000):
        notes.append(
            f"graph: the largest id is {n - 1:,}, but {m:,} records have at most {2 * m:,} vertices. The others are "
            f"isolated. If the ids have gaps, pass {arg('relabel', True)}"
        )
    directedness = given.directedness or columns.directedness
    return Graph(core, directedness, None, tuple(notes), weights and weights.measured(core, run))


def _open_file(file: Path, given: Arguments, run: RunOptions, remedy: str | None) -> Graph:
    notes = []
    given = replace(given, dtype=id_type(given.dtype))
    found = sidecar = Sidecar.read(file)
    if sidecar is not None and not sidecar.fits(file):
        expected = f"{sidecar.m} records of {sidecar.dtype}"
        notes.append(
            f"{shown(Sidecar.beside(file))} describes another file ({expected}, but {file.stat().st_size} bytes). It "
            "is ignored"
        )
        sidecar = None
    typed, hint = None, remedy
    if sidecar is not None:
        beside = shown(Sidecar.beside(file))
        stated = {"dtype": sidecar.dtype, "num_vertices": sidecar.n, "directedness": sidecar.directedness}
        for name, value in stated.items():
            if (other := getattr(given, name)) not in (None, value):
                raise ParameterError(f"{name}: {other!r}, but {beside} says {value!r}. Correct one of them")
        given, typed = replace(given, **cast(Any, stated)), sidecar.typed
        hint = remedy or f"{beside} says n = {sidecar.n}. One of both files is damaged. Write them again"
    weights_given, described = given.weights, None
    if weights_given is None:
        weights_given, described = weights_beside(file, found)
    weights = _weights_of(weights_given)
    core = core_of(file, given, weights, run, typed is not None, hint)
    weights = weights and weights.measured(core, run)
    if weights is not None and described:
        weights = weights.described(described, file)
    if given.num_vertices is None:
        notes.append(
            f"{shown(file)}: assumed n = {core.num_vertices}, the largest id + 1. If isolated vertices follow, pass "
            f"{arg('num_vertices')} or write a sidecar"
        )
    graph = Graph(core, given.directedness or "undirected", file, tuple(notes), weights, typed)
    graph._origin = _Files(os.path.abspath(file), replace(given, weights=None), _states_of([file]), _reopened)
    graph.directory = _directory_of(file)
    if remedy is not None and sidecar is not None and sidecar.checksum is not None:
        what = f"its records are not those that {shown(Sidecar.beside(file))} describes"
        graph._expected = sidecar.checksum, f"{shown(file)}: {what}. {remedy}"
    return graph


def _open_shards(directory: GraphDirectory, given: Arguments, run: RunOptions) -> Graph:
    folder, sidecar = directory.path, directory.sidecar
    files = [file_in(folder, name) for name in directory.shards]
    if missing := [file.name for file in files if not file.is_file()]:
        raise directory.damaged(f"an incomplete graph directory, without {missing[0]}")
    described = sidecar.weights if given.weights is None else None
    weights = _weights_of(given.weights if described is None else Weights.beside(folder / EDGES))
    core = _core.EdgeSource.open_shards(
        files,
        io=given.io,
        num_vertices=sidecar.n,
        weights=_source_of(weights),
        by_relation=sidecar.typed is not None,
    )
    if core.num_edges != sidecar.m:
        raise directory.damaged(
            f"its files hold {core.num_edges:,} records, but its sidecar says {sidecar.m:,}"
        )
    weights = weights and weights.measured(core, run)
    if weights is not None and described is not None:
        weights = weights.described(described, folder / EDGES)
    graph = Graph(core, sidecar.directedness, folder, (), weights, sidecar.typed)
    graph.directory = folder
    graph._origin = _Files(os.path.abspath(folder), given, _states_of(files), _reopened_directory)
    return graph


def core_of(
    file: Path,
    given: Arguments,
    weights: Weights | None,
    run: RunOptions,
    typed: bool = False,
    remedy: str | None = None,
) -> _core.EdgeSource:
    """Open the records of a file, which lie by relation if ``typed``. ``remedy`` ends the error of a large id."""
    named = given.of_records
    del named["directedness"]
    return _core.EdgeSource.open(
        file, **named, weights=_source_of(weights), options=run, by_relation=typed, remedy=remedy
    )


def _weights_of(given: Any) -> Weights | None:
    return None if given is None or given is False else Weights.of(given)


def _source_of(weights: Weights | None) -> Path | npt.NDArray[np.uint32] | None:
    return None if weights is None else weights.source


def _directory_of(file: Path) -> Path | None:
    """Return the graph directory of a file of edges."""
    found = file.name == EDGES and content_of(file.parent / MARKER)
    return GraphDirectory(file.parent).path if found else None


class GraphState(NamedTuple):
    """The state of a graph beside its records."""

    num_vertices: int
    directedness: Directedness
    notes: tuple[str, ...] = ()
    identity: tuple[int, str] | None = None
    weights: Weights | None = None
    typed: TypedRanges | None = None
    types_checked: bool = False
    """Whether the ends of the records are of the types of their relations."""

    def graph(self, core: _core.EdgeSource, file: Path | None = None) -> Graph:
        """Return the graph with its records."""
        graph = Graph(core, self.directedness, file, weights=self.weights, typed=self.typed)
        graph.notes, graph._identity, graph._types_checked = self.notes, self.identity, self.types_checked
        return graph


class Origin(Protocol):
    """Where a graph came from, and how it was opened, for pickles."""

    def reduced(self, graph: Graph) -> tuple[Any, ...]:
        """Return the function that opens the graph again, and its arguments."""

    def arguments(self) -> dict[str, Any] | None:
        """Return plain arguments of ``open_graph`` that open it again, without weights. None if there are none."""


State = tuple[int, int, str]
"""Size, time and ends of a file. Copies on other machines have the same size and ends."""


@dataclass(frozen=True)
class _Files:
    """The file or the graph directory of a graph, how it was opened, and the states of its files."""

    path: str
    given: Arguments
    states: tuple[State, ...]
    reopen: Callable[..., Graph]

    def reduced(self, graph: Graph) -> tuple[Any, ...]:
        return self.reopen, (self, graph._known)

    def arguments(self) -> dict[str, Any]:
        return {"source": self.path, **self.given.of_records}


def _states_of(files: Sequence[Path]) -> tuple[State, ...]:
    found = ((file.stat(), ends_of(file)) for file in files)
    return tuple((state.st_size, state.st_mtime_ns, ends) for state, ends in found)


def _reopened_directory(origin: _Files, known: GraphState) -> Graph:
    """Open the directory of a pickled graph, if its files are still the same."""
    directory = GraphDirectory(Path(origin.path))
    if _states_of([directory.path / name for name in directory.shards]) != origin.states:
        raise EdgeFileChangedError(
            f"{shown(origin.path)}: its files changed after the graph was pickled. Open it again by {REOPENING}"
        )
    graph = _open_shards(directory, origin.given, RunOptions())
    graph._identity = known.identity
    return graph


def _reopened(origin: _Files, known: GraphState) -> Graph:
    """Open the file of a pickled graph, if it is still the same one."""
    file, identity, weights = Path(origin.path), known.identity, known.weights
    (now,), (then,) = _states_of([file]), origin.states
    if now[0] != then[0] or (now != then and identity is None):
        change = f"{now[0]} bytes, then {then[0]}" if now[0] != then[0] else "written since"
        raise EdgeFileChangedError(
            f"{shown(file)}: the file changed after the graph was pickled ({change}). Open it again by {REOPENING}"
        )
    given = replace(origin.given, num_vertices=known.num_vertices, max_vertices=None)
    core = core_of(file, given, weights, RunOptions(), known.typed is not None)
    graph = known._replace(identity=None if now != then else identity).graph(core, file)
    graph._origin, graph.directory = origin, _directory_of(file)
    changed = "records" if now != then and graph.identify() != identity else ""
    if weights is not None and weights.measured(core, RunOptions()) != weights:
        changed = changed or "weights"
    if changed:
        raise EdgeFileChangedError(
            f"{shown(file)}: the {changed} changed after the graph was pickled. Open the file again by {REOPENING}"
        )
    return graph


def graph_of_records(records: npt.NDArray[np.uint32], known: GraphState) -> Graph:
    """Return the graph of an array of shape (m, 2)."""
    core = _core.EdgeSource.columns(
        *(records[:, 0], records[:, 1]),
        num_vertices=known.num_vertices,
        max_vertices=None,
        weights=_source_of(known.weights),
        options=RunOptions(),
        by_relation=known.typed is not None,
    )
    return known.graph(core)


def weighted_by_relation(graph: Graph, given: Any, options: RunOptions) -> Graph:
    """Return the graph with the weight of each record multiplied by the factor of its relation, if any is given."""
    factors, relations = checked_relation_weights(graph.relations, given), graph.relations
    if not factors or relations is None:
        return graph
    weights, scale = by_relation(relations, factors, graph._weights, options)
    return graph._with_weights(weights, options, scale)


def id_type(dtype: str | npt.DTypeLike | None) -> IdType | None:
    """Return the core's name of a raw file's id type."""
    if dtype is None or (isinstance(dtype, str) and dtype in RECORD_BYTES):
        return dtype
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    return choice("dtype", name.replace("uint", "u").replace("int", "i"), RECORD_BYTES)
