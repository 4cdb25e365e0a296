"""Graphs: files and arrays of edge records as one type that every function reads."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol, Unpack, get_args

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.file_states import ends_of
from ..core.folders import content_of
from ..core.ids import IdTable
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.parameters import Directedness, IdType, Layout, choice, integer, path, shown
from ..core.protocols import facts
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
from .graph_directory import EDGES, MARKER, GraphDirectory, id_tables
from .sidecars import DIRECTEDNESS, RECORD_BYTES, Sidecar, weights_beside
from .sources import as_ids, columns_of, of_memory
from .types import Relation, TypedRanges, VertexType
from .weights import Weights

REOPENING = code("fp.open_graph", "the same command")
"""What opens a graph again whose file changed."""

LAYOUTS: tuple[Layout, ...] = get_args(Layout)


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
        Assumptions about values that were not given. Each was a :class:`GraphWarning`.
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
        self.directedness = directedness
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
            typed = self._typed, self._types_checked
            known = (self.num_vertices, self.directedness, self.notes, self._identity, self._weights, typed)
            return graph_of_records, (self._source.block(0, self.num_edges), *known)
        self.check_unchanged()
        return self._origin.reduced(self)

    def check_unchanged(self) -> None:
        """Raise :class:`EdgeFileChangedError` if the file changed since it was opened."""
        self._source.check_unchanged()

    def identify(self, options: RunOptions | None = None) -> tuple[int, str]:
        """Return the number of loops and the checksum of the records, from one pass on the first call.

        The checksum is xxh3-128 of the records as little-endian u32 pairs, hashed in blocks of 8 MiB whose digests are
        hashed again. It does not depend on the container. In a typed graph the ends of all records are compared with
        the types of their relations.
        """
        self.check_unchanged()
        if self._identity is None:
            self.remember(*self._source.identify(options or RunOptions()))
        if self._typed is not None and not self._types_checked:
            self._typed.check(self._source.block, "graph" if self.path is None else shown(self.path))
            self._types_checked = True
        assert self._identity is not None
        return self._identity

    def remember(self, loops: int, checksum: str) -> None:
        """Store loops and checksum of an earlier pass, so that :meth:`identify` does not read the graph again.

        Refuse a checksum that is not the expected one, if there is one.
        """
        if self._expected is not None and self._expected[0] != checksum:
            raise GraphFormatError(self._expected[1])
        self._identity = (loops, checksum)

    def warn_of_unread_weights(self, name: str) -> None:
        """Warn that the function of that name counts every record once, if the records are weighted."""
        if self._weights is not None:
            warn(
                f"{name} does not read the weights of records: each record counts once. multilevel reads them. To "
                f"leave them out, open the graph with {arg('weights', False)}",
                GraphWarning,
            )

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
        self.remember(loops, checksum)
        return degrees


def open_records(
    source: Any,
    *,
    dtype: IdType | npt.DTypeLike | None = None,
    num_vertices: int | None = None,
    directedness: Directedness | None = None,
    io: Literal["mmap", "read"] = "mmap",
    layout: Layout | None = None,
    max_vertices: int | None = None,
    weights: Any = None,
    options: RunOptions | None = None,
    remedy: str | None = None,
) -> Graph:
    """Open a file of raw records, a .npy, an array, a table of integers, or a graph of another library.

    :func:`fastpart.open_graph` documents the parameters. Here they are checked. With a ``remedy``, which ends errors,
    the records of a file have to be those that its sidecar describes.
    """
    run = options or RunOptions()
    num_vertices, max_vertices = checked_sizes(num_vertices, max_vertices)
    check_words(directedness, layout, io)
    if isinstance(source, str | bytes | os.PathLike):
        given = _Arguments(id_type(dtype), num_vertices, directedness, io, layout, max_vertices)
        return _open_file(path("graph", source), given, weights, run, remedy)
    if dtype is not None:
        raise ParameterError("dtype: applies to raw files only. Leave it out for an array")
    columns = columns_of(source, layout, run, weights if isinstance(weights, str) else None)
    weighted = _weights_of(weights if columns.weights is None else columns.weights)
    if num_vertices is None:
        num_vertices = columns.num_vertices
    with of_memory():
        core = _core.EdgeSource.columns(
            as_ids(columns.sources),
            as_ids(columns.targets),
            num_vertices=num_vertices,
            max_vertices=max_vertices,
            weights=None if weighted is None else weighted.source,
            options=run,
        )
    return Graph(
        core, directedness or columns.directedness, None, weights=weighted and weighted.measured(core, run)
    )


def checked_sizes(num_vertices: Any, max_vertices: Any = None) -> tuple[int | None, int | None]:
    """Return numbers of vertices as integers, if they are given."""
    n = None if num_vertices is None else integer("num_vertices", num_vertices, 0, 2**32 - 1)
    return n, None if max_vertices is None else integer("max_vertices", max_vertices, 1, 2**32 - 1)


def check_words(directedness: Any, layout: Any, io: Any = "mmap") -> None:
    """Refuse unknown words. None is the default of the first two."""
    if directedness is not None:
        choice("directedness", directedness, DIRECTEDNESS)
    if layout is not None:
        choice("layout", layout, LAYOUTS)
    choice("io", io, ("mmap", "read"))


def _weights_of(given: Any) -> Weights | None:
    return None if given is None or given is False else Weights.of(given)


@dataclass(frozen=True)
class _Arguments:
    """The arguments of the caller for a file."""

    dtype: IdType | None
    num_vertices: int | None
    directedness: Directedness | None
    io: str
    layout: Layout | None
    max_vertices: int | None
    weights: Weights | None = None

    def open(
        self, file: Path, options: RunOptions, *, typed: bool, remedy: str | None = None
    ) -> _core.EdgeSource:
        """Open a file with these arguments. The records of a typed graph lie by relation.

        ``remedy`` ends the error of an id that is too large.
        """
        named = {name: value for name, value in vars(self).items() if name != "directedness"}
        named["weights"] = None if self.weights is None else self.weights.source
        return _core.EdgeSource.open(file, **named, options=options, by_relation=typed, remedy=remedy)


def _open_file(file: Path, given: _Arguments, weights: Any, options: RunOptions, remedy: str | None) -> Graph:
    notes = []
    sidecar = Sidecar.read(file)
    if sidecar is not None and not sidecar.fits(file):
        expected = f"{sidecar.m} records of {sidecar.dtype}"
        notes.append(
            f"{shown(Sidecar.beside(file))} describes another file ({expected}, but {file.stat().st_size} bytes). It "
            "is ignored"
        )
        sidecar = None
    if sidecar is not None:
        _agree(file, "dtype", given.dtype, sidecar.dtype)
        _agree(file, "num_vertices", given.num_vertices, sidecar.n)
        _agree(file, "directedness", given.directedness, sidecar.directedness)
        given = replace(given, dtype=sidecar.dtype, num_vertices=sidecar.n, directedness=sidecar.directedness)
    described = None
    if weights is None:
        weights, described = weights_beside(file)
    given = replace(given, weights=_weights_of(weights))
    typed = None if sidecar is None else sidecar.typed
    core = given.open(file, options, typed=typed is not None, remedy=remedy or _remedy(file, sidecar))
    if given.weights is not None:
        weighted = given.weights.measured(core, options)
        given = replace(given, weights=weighted.described(described, file) if described else weighted)
    if given.num_vertices is None:
        notes.append(
            f"{shown(file)}: assumed n = {core.num_vertices}, the largest id + 1. If isolated vertices follow, pass "
            f"{arg('num_vertices')} or write a sidecar"
        )
    graph = Graph(core, given.directedness or "undirected", file, tuple(notes), given.weights, typed)
    state = file.stat()
    graph._origin = _Origin(os.path.abspath(file), given, state.st_size, state.st_mtime_ns, ends_of(file))
    graph.directory = _directory_of(file)
    if remedy is not None and sidecar is not None and sidecar.checksum is not None:
        what = f"its records are not those that {shown(Sidecar.beside(file))} describes"
        graph._expected = sidecar.checksum, f"{shown(file)}: {what}. {remedy}"
    return graph


def _remedy(file: Path, sidecar: Sidecar | None) -> str | None:
    """Return what helps where an id is too large for the number of vertices in a sidecar."""
    if sidecar is None:
        return None
    return (
        f"{shown(Sidecar.beside(file))} says n = {sidecar.n}. One of both files is damaged. Write them again"
    )


def _directory_of(file: Path) -> Path | None:
    """Return the graph directory of a file of edges."""
    found = file.name == EDGES and content_of(file.parent / MARKER)
    return GraphDirectory(file.parent).path if found else None


class Origin(Protocol):
    """Where a graph came from, and how it was opened, for pickles."""

    def reduced(self, graph: Graph) -> tuple[Any, ...]:
        """Return the function that opens the graph again, and its arguments."""

    def arguments(self) -> dict[str, Any] | None:
        """Return plain arguments of ``open_graph`` that open it again, without weights. None if there are none."""


@dataclass(frozen=True)
class _Origin:
    """The file of a graph and how it was opened."""

    path: str
    given: _Arguments
    size: int
    changed: int
    ends: str
    """Copies on other machines have the same."""

    def reduced(self, graph: Graph) -> tuple[Any, ...]:
        typed = graph._typed, graph._types_checked
        known = (graph.num_vertices, graph.directedness, graph.notes, graph._identity, graph._weights, typed)
        return _reopened, (self, *known)

    def arguments(self) -> dict[str, Any] | None:
        given = {name: value for name, value in vars(self.given).items() if name != "weights"}
        return {"source": self.path, **given}


def _reopened(
    origin: _Origin,
    n: int,
    directedness: Directedness,
    notes: tuple[str, ...],
    identity: tuple[int, str] | None,
    weights: Weights | None = None,
    typed: tuple[TypedRanges | None, bool] = (None, False),
) -> Graph:
    """Open the file of a pickled graph, if it is still the same one."""
    file = Path(origin.path)
    state = file.stat()
    touched = (state.st_mtime_ns, ends_of(file)) != (origin.changed, origin.ends)
    if state.st_size != origin.size or (touched and identity is None):
        change = (
            f"{state.st_size} bytes, then {origin.size}" if state.st_size != origin.size else "written since"
        )
        raise EdgeFileChangedError(
            f"{shown(file)}: the file changed after the graph was pickled ({change}). Open it again by {REOPENING}"
        )
    given = replace(origin.given, num_vertices=n, max_vertices=None)
    core = given.open(file, RunOptions(), typed=typed[0] is not None)
    graph = Graph(core, directedness, file, weights=weights, typed=typed[0])
    graph.notes, graph._origin, graph._types_checked = notes, origin, typed[1]
    graph.directory = _directory_of(file)
    changed = "records" if touched and graph.identify() != identity else ""
    if weights is not None and weights.measured(core, RunOptions()) != weights:
        changed = changed or "weights"
    if changed:
        raise EdgeFileChangedError(
            f"{shown(file)}: the {changed} changed after the graph was pickled. Open the file again by {REOPENING}"
        )
    graph._identity = identity
    return graph


def graph_of_records(
    records: npt.NDArray[np.uint32],
    n: int,
    directedness: Directedness,
    notes: tuple[str, ...] = (),
    identity: tuple[int, str] | None = None,
    weights: Weights | None = None,
    typed: tuple[TypedRanges | None, bool] = (None, False),
) -> Graph:
    """Return the graph of an array. ``typed`` also says whether the ends of its records are of their types."""
    core = _core.EdgeSource.columns(
        records[:, 0],
        records[:, 1],
        num_vertices=n,
        max_vertices=None,
        weights=None if weights is None else weights.source,
        options=RunOptions(),
        by_relation=typed[0] is not None,
    )
    graph = Graph(core, directedness, None, weights=weights, typed=typed[0])
    graph.notes, graph._identity, graph._types_checked = notes, identity, typed[1]
    return graph


def _agree(file: Path, name: str, given: object, stored: object) -> None:
    if given is not None and given != stored:
        beside = shown(Sidecar.beside(file))
        raise ParameterError(f"{name}: {given!r}, but {beside} says {stored!r}. Correct one of them")


def id_type(dtype: str | npt.DTypeLike | None) -> IdType | None:
    """Return the core's name of a raw file's id type."""
    if dtype is None or (isinstance(dtype, str) and dtype in RECORD_BYTES):
        return dtype
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    return choice("dtype", name.replace("uint", "u").replace("int", "i"), RECORD_BYTES)
