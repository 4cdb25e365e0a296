"""Graphs of files and tables that hold no raw records: converted, and opened."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from .. import _core
from ..core.file_states import state_of
from ..core.notes import log
from ..core.options import RunOptions
from ..core.parameters import Directedness, Layout, mark, shown
from ..errors import (
    EdgeFileChangedError,
    FastpartError,
    GraphFormatError,
    ParameterError,
    _NameFoundError,
    code,
)
from .conversion_cache import Stored, conversion, temporary
from .convert import How, convert_files, parquet
from .convert.inputs import Files, one_kind, spooled, unpacked
from .convert.weights import weight_source
from .directory_opening import open_directory
from .graph import REOPENING, Graph, check_words, checked_sizes, open_records
from .graph_directory import EDGES
from .tables import Pair, Table, ends_of, kinds_of
from .weights import Weights

_GRAPH = "graph"

_COMPARED_LATER = (EDGES, Weights.beside(Path(EDGES)).name)
"""The records are compared by whatever reads all of them, and their weights when the graph is opened."""


@dataclass(frozen=True)
class Given:
    """The arguments of :func:`fastpart.open_graph` for any source."""

    columns: Pair | None = None
    comments: str | None = None
    relabel: bool = False
    num_vertices: int | None = None
    directedness: Directedness | None = None
    io: Any = "mmap"
    layout: Layout | None = None
    max_vertices: int | None = None
    weights: Any = None

    def __post_init__(self) -> None:
        checked_sizes(self.num_vertices, self.max_vertices)
        check_words(self.directedness, self.layout, self.io)
        mark("comments", self.comments)

    def refuse(self, name: str, why: str) -> None:
        """Refuse a parameter that was given."""
        if getattr(self, name) not in (None, False):
            raise ParameterError(f"{name}: {why}")

    def of_records(self) -> dict[str, Any]:
        """Return the arguments for raw records and arrays."""
        return {
            name: value
            for name, value in vars(self).items()
            if name not in ("columns", "comments", "relabel")
        }

    @property
    def weight_column(self) -> int | str | bool | None:
        """The column of the weights, False for none, and None if they are not in a column."""
        weights = self.weights
        if isinstance(weights, str) and not weights.endswith(".npy"):
            return weights
        return weights if isinstance(weights, int) else None

    @property
    def separate_weights(self) -> Any:
        """Weights that are an array or a file, or None."""
        return None if self.weight_column is not None else self.weights

    @property
    def key(self) -> dict[str, Any]:
        """What changes the conversion."""
        known = {name: value for name, value in asdict(replace(self, weights=None)).items() if name != "io"}
        separate = self.separate_weights is not None
        return known | {
            "columns": self.columns and list(self.columns),
            "weights": self.weight_column,
            "separate": separate,
        }


def open_converted(source: Any, given: Given, run: RunOptions) -> Graph:
    """Open files through their conversion. The source is :class:`Files`, ``-`` or a URL."""
    if isinstance(source, str) and source == "-":
        import tempfile  # here, because its import is slow

        with tempfile.TemporaryDirectory(dir=run.tmp_dir) as folder:
            files = spooled(Path(folder))
            return _opened(temporary(lambda into: _convert(files, into, given, run), run), None, given, run)
    named: Files | Remote = Remote.of(source) if is_url(source) else source
    key = _key(named, given)

    def make(into: Path) -> None:
        _convert(named, into, given, run)
        if _key(named, given) != key:
            raise EdgeFileChangedError(
                f"{named}: changed while it was converted. Open it again when it is complete"
            )

    stored = conversion(key, str(named), make, run, _COMPARED_LATER)
    try:
        graph = _opened(stored, named.path, given, run)
    except GraphFormatError:
        if not stored.found or given.separate_weights is not None:
            raise
        stored = conversion(key, str(named), make, run, _COMPARED_LATER, damaged=True)
        graph = _opened(stored, named.path, given, run)
    if given.separate_weights is None:
        sources = [str(each) for each in named.files] if isinstance(named, Files) else named.url
        graph._origin = _Conversion(sources, None if named.path is None else str(named.path), given, key)
    return graph


def _key(named: Files | Remote, given: Given) -> dict[str, Any]:
    if isinstance(named, Files):
        files = [[shown(os.path.abspath(file)), *state_of(file, changes=True)] for file in named.files]
    else:
        files = named.key
    return {"version": _core.__version__, "files": files, "options": given.key}


def _opened(stored: Stored, named: Path | None, given: Given, run: RunOptions) -> Graph:
    """Open what a conversion wrote, under the path that the user named."""
    separate, remedy = given.separate_weights, stored.remedy
    if (stored.folder / _GRAPH).is_dir():
        graph = open_directory(stored.folder / _GRAPH, run, given.io, _of_directory(given), remedy=remedy)
        back = code(
            "fp.restore(result, graph=graph) brings",
            "-o with a .parquet and --restore, or `fastpart restore`, bring",
        )
        log.info("vertices are numbered by the rank of their ids. %s results back", back)
    else:
        graph = open_records(stored.folder / EDGES, io=given.io, weights=separate, options=run, remedy=remedy)
    graph.path = named
    graph._origin = None
    graph._folder = stored.keep
    return graph


def _of_directory(given: Given) -> Any:
    """Return the weights to open a graph directory with. Those in a column of its table lie beside the records."""
    return None if given.weight_column not in (None, False) else given.weights


def _convert(named: Files | Remote, into: Path, given: Given, run: RunOptions) -> None:
    """Write the records of files to a folder."""
    if isinstance(named, Remote):
        given.refuse("comments", f"{named} is Parquet. They are for text")
        if (table := named.table_of_strings(given.columns, given.relabel)) is not None:
            _ingest(table, into, given, run)
            return
        import tempfile  # here, because its import is slow

        weights = given.weight_column if isinstance(given.weight_column, str) else None
        with tempfile.TemporaryDirectory(prefix=".copy-", dir=into) as folder:
            copies = named.copied(Path(folder), given.columns, weights)
            # Their columns are in this order.
            _convert(copies, into, replace(given, columns=(1, 2)), run)
        return
    with unpacked(named, into, run.memory_limit) as files:
        kind = one_kind(files)
        if kind != "text":
            given.refuse("comments", f"{files} is {kind}. They are for text")
            if (table := _table_of_strings(files, given, kind)) is not None:
                _ingest(table, into, given, run)
                return
        elif _convert_text(files, into, given, run):
            return
        column = given.weight_column
        how = How(
            weights=weight_source(False if given.separate_weights is not None else column, False, 1),
            layout=given.layout,
            num_vertices=given.num_vertices,
            max_vertices=given.max_vertices,
            directedness=given.directedness,
            columns=given.columns,
            unsure=column is None,
            comments=given.comments,
            names=True,
        )
        try:
            convert_files(files, into / EDGES, how, run)
        except _NameFoundError:
            _tabulated(files, into, True, given, run)


def _table_of_strings(files: Files, given: Given, kind: str) -> dict[str, Any] | None:
    """Return the relation of a schema, if the ids of Parquet are strings or are to be relabelled. Else None."""
    if kind != "parquet":
        given.refuse("relabel", f"{files} is {kind}. `fastpart convert --relabel` gives dense ids")
        return None
    weights = given.weight_column if isinstance(given.weight_column, str) else None
    ends, strings = parquet.ids_of(files, given.columns, weights)
    if not (strings or given.relabel):
        return None
    sides = zip(("source", "target"), ends, strict=True)
    return {"files": [str(file) for file in files.files]} | {
        side: {"vertex": {"column": end}} for side, end in sides
    }


def _convert_text(files: Files, into: Path, given: Given, run: RunOptions) -> bool:
    """Write the graph directory of text whose ids are names or are to be relabelled. False: its ids are numbers."""
    said = _said_of_text(given)
    names = any(_core.text_holds_names(file, options=run, **said) for file in files.files)
    if not (names or given.relabel):
        return False
    try:
        _tabulated(files, into, names, given, run)
    except _NameFoundError:
        _tabulated(files, into, True, given, run)
    return True


def _tabulated(files: Files, into: Path, names: bool, given: Given, run: RunOptions) -> None:
    """Write the records of text as a table, and ingest it."""
    import tempfile  # here, because its import is slow

    as_: dict[str, Any] = {"as": "string" if names else "int"}
    with tempfile.TemporaryDirectory(prefix=".table-", dir=into) as folder:
        table = Path(folder, "table.csv")
        notes = _core.tabulate(files.files, table, names=names, options=run, **_said_of_text(given))
        for note in notes:
            log.info("%s: %s", files, note)
        relation = {"files": [str(table)]} | {
            side: {"vertex": {"column": side} | as_} for side in ("source", "target")
        }
        weighted = given.weight_column not in (None, False)
        _ingest(relation, into, replace(given, weights="weight") if weighted else given, run, f"{files}: ")


def _said_of_text(given: Given) -> dict[str, Any]:
    """Return what the arguments say of text."""
    column = given.weight_column
    return {
        "columns": given.columns,
        "column": None if column is False else column,
        "unsure": column is None and given.columns is None,
        "comments": given.comments,
    }


def open_strings(table: Table, given: Given, run: RunOptions) -> Graph:
    """Open a frame whose ids are strings, through a temporary folder that lives as long as the graph."""
    ends = {"source": {"vertex": "source"}, "target": {"vertex": "target"}}
    weights = given.weight_column if isinstance(given.weight_column, str) else None
    relation = {"files": table.named_columns(weights), **ends}
    named = given if weights is None else replace(given, weights="weight")
    return _opened(temporary(lambda into: _ingest(relation, into, named, run), run), None, named, run)


def _ingest(
    relation: dict[str, Any], into: Path, given: Given, run: RunOptions, where: str = "weights: "
) -> None:
    """Write a graph directory. Vertices are numbered by the rank of their ids. ``where`` begins errors of weights."""
    from .ingest import ingest

    for name in ("num_vertices", "layout"):
        given.refuse(name, "the vertices are those whose ids the table has. Leave it out")
    if given.weight_column not in (None, False):
        if not isinstance(given.weight_column, str):
            raise ParameterError("weights: name the column, where ids are strings or relabelled")
        relation = relation | {"weight": given.weight_column}
    schema: dict[str, Any] = {
        "fastpart": 1,
        "vertices": {"vertex": {}},
        "relations": {"edge": relation | {"missing": "add"}},
    }
    if given.directedness is not None:
        schema["directedness"] = given.directedness
    with _without_schema(where):
        ingest(schema, into / _GRAPH, **vars(run))


@contextmanager
def _without_schema(where: str) -> Iterator[None]:
    """Take the schema, which the user does not know, out of errors."""
    try:
        yield
    except (GraphFormatError, ParameterError) as error:
        text = re.sub(r", or say `[^`]*` for '\w+' in the schema", "", str(error))
        text = re.sub(r"^relations\.edge\.weight: ", where, text)
        text = re.sub(r"relations\.edge(\.\w+)?( \(data frame\))?", "the table", text)
        raise type(error)(text) from None


@dataclass(frozen=True)
class _Conversion:
    """How a converted graph was opened, for pickles. Another process finds the conversion, or writes it again."""

    sources: list[str] | str
    path: str | None
    given: Given
    key: dict[str, Any]

    def reduced(self, graph: Graph) -> tuple[Any, ...]:
        return _reconverted, (self, graph.num_vertices, graph.num_edges, graph._identity)

    def arguments(self) -> None:
        """Return no arguments: another machine would convert the source again, into a cache of its own."""


def _reconverted(origin: _Conversion, n: int, m: int, identity: tuple[int, str] | None) -> Graph:
    """Open the source of a pickled graph, if it is still the same one."""
    named: Any = origin.sources
    if isinstance(named, list):
        named = Files(tuple(Path(file) for file in named), (origin.path and Path(origin.path)) or None)
    graph = open_converted(named, origin.given, RunOptions())
    same = (
        graph._origin is not None
        and isinstance(graph._origin, _Conversion)
        and graph._origin.key == origin.key
    )
    if (graph.num_vertices, graph.num_edges) != (n, m) or not (
        same or (identity is not None and graph.identify() == identity)
    ):
        raise EdgeFileChangedError(
            f"{shown(origin.path or str(named))}: changed after the graph was pickled. Open it again by {REOPENING}"
        )
    graph._identity = identity
    return graph


def is_url(source: Any) -> bool:
    """Return whether a source is a URL."""
    return isinstance(source, str) and re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", source) is not None


@dataclass(frozen=True)
class Remote:
    """The tables that a URL names."""

    url: str
    reader: Any
    path: Path | None = None

    @classmethod
    def of(cls, url: str) -> Remote:
        """Find the tables and read their footers."""
        from .ingest.tables import open_table

        try:
            return cls(url, open_table("graph", url))
        except (OSError, FastpartError) as error:  # they begin with an entry of a schema
            if isinstance(error, OSError) and error.errno is not None:
                text = str(error.strerror).replace("graph.files: ", "", 1)
                raise type(error)(error.errno, text, *([error.filename] if error.filename else [])) from None
            raise type(error)(str(error).replace("graph.files: ", "", 1)) from None

    @property
    def key(self) -> list[list[Any]]:
        """Path, size and version of each file."""
        return [[file.path, file.bytes, file.mark] for file in self.reader.files]

    def __str__(self) -> str:
        return self.url

    def table_of_strings(self, columns: Pair | None, relabel: bool) -> dict[str, Any] | None:
        """Return the relation of a schema, if the ids are strings or are to be relabelled. Else None."""
        ends, strings = self._ends(columns, None)
        if not (strings or relabel):
            return None
        return {"files": self.url} | {
            side: {"vertex": end} for side, end in zip(("source", "target"), ends, strict=True)
        }

    def copied(self, into: Path, columns: Pair | None, weights: str | None) -> Files:
        """Write the columns of the ids, and that of the weights, to local files."""
        ends, _ = self._ends(columns, weights)
        wanted = [*ends, *([] if weights is None else [weights])]
        copies: dict[Path, str] = {}
        for number, file in enumerate(self.reader.files):
            if lacking := [name for name in wanted if name not in file.dtypes]:
                raise GraphFormatError(
                    f"{shown(file.path)}: it has no column {lacking[0]!r}, only {', '.join(file.dtypes)}"
                )
            for batch in self.reader.batches(number, wanted):
                copy = into / f"{len(copies):06}.parquet"
                batch.write_parquet(copy)
                copies[copy] = file.path
        return Files(tuple(copies), None, copies)

    def _ends(self, columns: Pair | None, weights: str | None) -> tuple[tuple[str, str], bool]:
        if not self.reader.files:
            raise GraphFormatError(f"{self.url}: no table")
        kinds = kinds_of(self.reader.files[0].dtypes)
        u, v = (kinds[end] for end in ends_of(self.url, kinds, columns, weights, GraphFormatError))
        return (u[0], v[0]), "string" in (u[1], v[1])
