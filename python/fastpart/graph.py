"""Graphs: files and arrays of edge records as one type that every function reads."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
import numpy.typing as npt

from . import _core
from .errors import GraphFormatError, ParameterError
from .notes import log
from .options import Options, RunOptions, run_options, with_options
from .parameters import choice, integer, path, shown

DIRECTEDNESS = ("undirected", "symmetric", "directed")
LAYOUTS = ("rows", "edge_index")
_RECORD_BYTES = {"u32": 8, "i32": 8, "u64": 16, "i64": 16}


class Graph:
    """A graph as a sequence of edge records, read block by block from a file or an array.

    :func:`open_graph` makes it. A file stays open (and mapped, with ``io="mmap"``) while the object lives. Do not
    change or truncate the file during that time. Replacing it by rename, or deleting it, is safe.

    Attributes
    ----------
    num_vertices : int
        Number of vertices n; ids are ``0..n-1``.
    num_edges : int
        Number of records m, loops included.
    directedness : {"undirected", "symmetric", "directed"}
        What a record means for training. Partitioning treats all three alike.
    path : pathlib.Path or None
        The file, or None for an array.
    dtype : str or None
        Type of the ids in the file.
    notes : tuple of str
        Assumptions about values that were not given.
    """

    def __init__(
        self, source: _core.EdgeSource, directedness: str, file: Path | None, notes: tuple[str, ...] = ()
    ) -> None:
        self._source = source
        self._identity: tuple[int, str] | None = None
        self.directedness = directedness
        self.path = file
        self.notes = notes
        for note in notes:
            log.info("%s", note)

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

    def __repr__(self) -> str:
        where = f" {str(self.path)!r}" if self.path else ""
        return f"<Graph{where}: n={self.num_vertices}, m={self.num_edges}, {self.directedness}>"

    def check_unchanged(self) -> None:
        """Raise :class:`EdgeFileChangedError` if the file changed since it was opened."""
        self._source.check_unchanged()

    def identify(self, options: RunOptions | None = None) -> tuple[int, str]:
        """Return the number of loops and the checksum of the records, from one pass on the first call.

        The checksum is xxh3-128 of the records as little-endian u32 pairs, hashed in blocks of 8 MiB whose digests are
        hashed again; it does not depend on the container.
        """
        self.check_unchanged()
        if self._identity is None:
            self._identity = self._source.identify(options or RunOptions())
        return self._identity

    def remember(self, loops: int, checksum: str) -> None:
        """Store loops and checksum of an earlier pass, so that :meth:`identify` does not read the graph again."""
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
        self.remember(loops, checksum)
        return degrees


@dataclass(frozen=True)
class Sidecar:
    """The content of ``FILE.json``, which describes the raw edge file beside it."""

    dtype: str
    n: int
    m: int
    directedness: str
    checksum: str | None = None

    @staticmethod
    def beside(file: Path) -> Path:
        """Return where the sidecar of ``file`` lies."""
        return Path(f"{file}.json")

    @classmethod
    def read(cls, file: Path) -> Sidecar | None:
        """Return the sidecar of ``file``, or None if it has none."""
        beside = cls.beside(file)
        try:
            text = beside.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            content = json.loads(text)
            if content.get("fastpart") != 1:
                return None  # somebody else's file
            # Earlier versions called the directedness "kind".
            directedness = content.get("directedness", content.get("kind"))
            sidecar = cls(content["dtype"], content["n"], content["m"], directedness, content.get("checksum"))
            choice("dtype", sidecar.dtype, _RECORD_BYTES)
            choice("directedness", sidecar.directedness, DIRECTEDNESS)
            integer("n", sidecar.n, 0, 2**32 - 1)
            integer("m", sidecar.m, 0, 2**60)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise GraphFormatError(
                f"{shown(beside)}: not a sidecar of fastpart ({error}); delete it or write it again"
            ) from None
        return sidecar

    @classmethod
    def of(cls, file: Path) -> Sidecar | None:
        """Return the sidecar of ``file`` if there is one that matches the file's size."""
        sidecar = cls.read(file)
        return (
            sidecar if sidecar is not None and file.exists() and sidecar.fits(file.stat().st_size) else None
        )

    def fits(self, size: int) -> bool:
        """Return whether a file of ``size`` bytes matches the sidecar."""
        return self.m * _RECORD_BYTES[self.dtype] == size

    def write(self, file: Path) -> None:
        """Write the sidecar of ``file``."""
        content = {"fastpart": 1, **{k: v for k, v in vars(self).items() if v is not None}}
        _core.write_file(self.beside(file), (json.dumps(content, indent=1) + "\n").encode())


@with_options
def open_graph(
    source: Any,
    *,
    dtype: str | npt.DTypeLike | None = None,
    num_vertices: int | None = None,
    directedness: str | None = None,
    io: Literal["mmap", "read"] = "mmap",
    layout: Literal["rows", "edge_index"] | None = None,
    max_vertices: int | None = None,
    **options: Unpack[Options],
) -> Graph:
    """Open a graph: a file of edge records, or an array that holds them.

    Parameters
    ----------
    source : path, numpy array, torch tensor, Polars frame or Graph
        A file of headerless little-endian pairs of u32 (or u64) ids, or a ``.npy`` file. A numpy array of shape (m, 2),
        or (2, m) if m != 2 or ``layout="edge_index"``. A torch ``edge_index`` of shape (2, m). A Polars frame of two
        integer columns. Arrays hold uint32, int32, uint64 or int64 and are read in place, never copied as a whole. Do
        not write to them during a call.
    dtype : {"u32", "u64", "i32", "i64"}, optional
        Type of the ids of a raw file. Default: the sidecar's, or u32. Without a sidecar the first bytes are checked:
        text, archives, u64 ids and big-endian files are refused.
    num_vertices : int, optional
        Number of vertices n. Default: the sidecar's, or the largest id + 1, which takes one pass over the records.
        Isolated vertices behind the largest id are then lost.
    directedness : {"undirected", "symmetric", "directed"}, optional
        What a record means for training: an edge in both directions, one of the two directions of such an edge (the
        file lists both), or a directed edge. Default: the sidecar's, or "undirected".
    io : {"mmap", "read"}
        "read" never maps the file. Use it where others may truncate the file during a run.
    layout : {"rows", "edge_index"}, optional
        Which axis of a two-dimensional array counts the records.
    max_vertices : int, optional
        The largest n that is accepted from the ids. Default: an n above 16 million is refused as a mistake if it is
        also more than 2,048 times the number of records.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    Graph

    Raises
    ------
    FileNotFoundError, PermissionError
        With the path.
    GraphFormatError
        The file is of another format. The text says what the bytes look like.
    ParameterError
        An argument contradicts the sidecar or the ``.npy`` header.
    TypeError
        The source is of a type, or an array of a dtype, that cannot hold edges.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> graph = fp.open_graph(np.array([[0, 1], [1, 2], [2, 0]], dtype=np.uint32))
    >>> graph.num_vertices, graph.num_edges
    (3, 3)
    """
    run = run_options(**options)
    if isinstance(source, Graph):
        return source
    if num_vertices is not None:
        num_vertices = integer("num_vertices", num_vertices, 0, 2**32 - 1)
    if max_vertices is not None:
        max_vertices = integer("max_vertices", max_vertices, 1, 2**32 - 1)
    if directedness is not None:
        choice("directedness", directedness, DIRECTEDNESS)
    if layout is not None:
        choice("layout", layout, LAYOUTS)
    choice("io", io, ("mmap", "read"))
    if isinstance(source, str | bytes | os.PathLike):
        given = _Given(id_type(dtype), num_vertices, directedness, io, layout, max_vertices)
        return _open_file(path("graph", source), given, run)
    if dtype is not None:
        raise ParameterError("dtype: is for raw files; an array has its own")
    sources, targets = _columns(source, layout)
    core = _core.EdgeSource.columns(
        sources, targets, num_vertices=num_vertices, max_vertices=max_vertices, options=run
    )
    return Graph(core, directedness or "undirected", None)


@dataclass(frozen=True)
class _Given:
    """The arguments of the caller for a file."""

    dtype: str | None
    num_vertices: int | None
    directedness: str | None
    io: str
    layout: str | None
    max_vertices: int | None


def _open_file(file: Path, given: _Given, options: RunOptions) -> Graph:
    notes = []
    sidecar = Sidecar.read(file)
    if sidecar is not None:
        size = os.stat(file).st_size
        if not sidecar.fits(size):
            expected = f"{sidecar.m} records of {sidecar.dtype}"
            notes.append(
                f"{shown(Sidecar.beside(file))} is of another file ({expected}, but {size} bytes): ignored"
            )
            sidecar = None
    if sidecar is not None:
        _agree(file, "dtype", given.dtype, sidecar.dtype)
        _agree(file, "num_vertices", given.num_vertices, sidecar.n)
        _agree(file, "directedness", given.directedness, sidecar.directedness)
        given = _Given(
            sidecar.dtype, sidecar.n, sidecar.directedness, given.io, given.layout, given.max_vertices
        )
    core = _core.EdgeSource.open(
        file,
        dtype=given.dtype,
        layout=given.layout,
        io=given.io,
        num_vertices=given.num_vertices,
        max_vertices=given.max_vertices,
        options=options,
    )
    if given.num_vertices is None:
        notes.append(
            f"{shown(file)}: n = {core.num_vertices}, the largest id + 1; isolated vertices behind it are unknown "
            "(num_vertices= or a sidecar tells them)"
        )
    return Graph(core, given.directedness or "undirected", file, tuple(notes))


def _agree(file: Path, name: str, given: object, stored: object) -> None:
    if given is not None and given != stored:
        beside = shown(Sidecar.beside(file))
        raise ParameterError(f"{name}: {given!r}, but {beside} says {stored!r}; correct one of them")


def id_type(dtype: str | npt.DTypeLike | None) -> str | None:
    """Return the core's name of a raw file's id type."""
    if dtype is None or (isinstance(dtype, str) and dtype in _RECORD_BYTES):
        return dtype
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    return choice("dtype", name.replace("uint", "u").replace("int", "i"), _RECORD_BYTES)


def _columns(source: Any, layout: str | None) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Sources and targets of an array, as views where the library allows."""
    library = type(source).__module__.partition(".")[0]
    if library == "polars" and hasattr(source, "get_columns"):
        if source.width != 2:
            raise TypeError(
                f"graph: a Polars frame of {source.width} columns; select the two that hold the ids"
            )
        for series in source.get_columns():
            if series.null_count() or not series.dtype.is_integer():
                raise TypeError(
                    f"graph: column {series.name!r} is {series.dtype}, or has nulls; ids are integers"
                )
        sources, targets = (series.to_numpy() for series in source.get_columns())
        return sources, targets
    if library == "torch" and hasattr(source, "detach"):
        source, layout = source.detach().cpu().numpy(), layout or "edge_index"
    if isinstance(source, np.ma.MaskedArray):
        raise TypeError("graph: a masked array; drop the masked records, as .compressed() or .data of them")
    if not isinstance(source, np.ndarray):
        raise TypeError(
            f"graph: expected a path, a numpy array, a torch edge_index or a Polars frame, got {type(source).__name__}"
        )
    if source.ndim == 2 and source.shape[1] == 2 and layout != "edge_index":
        return source[:, 0], source[:, 1]
    if source.ndim == 2 and source.shape[0] == 2 and layout != "rows":
        return source[0], source[1]
    wanted = {"rows": "(m, 2)", "edge_index": "(2, m)", None: "(m, 2) or (2, m)"}[layout]
    raise TypeError(f"graph: an array of shape {source.shape}; edges have shape {wanted}")
