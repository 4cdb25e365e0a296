"""The second step from a source to a graph: what holds no raw records is converted, or was converted before."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .. import _core
from ..core.frames import before_polars_threads, pl
from ..core.ids import IdTable
from ..core.notes import log
from ..core.options import RunOptions
from ..core.parameters import shown
from ..core.system import state_of
from ..errors import EdgeFileChangedError, GraphFormatError, ParameterError, _NameFoundError, code
from .conversion_cache import Stored, conversion, temporary
from .convert import How, convert_files, weight_source
from .files import Files, one_kind, spooled, unpacked
from .graph import REOPENING, Graph, open_records
from .graph_directory import EDGES
from .parquet import Remote, ids_of
from .sources import Arguments, Columns
from .tables import Table
from .weights import Weights

_GRAPH = "graph"
_IDS = "vertex.parquet"
_ENDS = ("source", "target")

_COMPARED_LATER = (EDGES, Weights.beside(Path(EDGES)).name)
"""The records are compared by whatever reads all of them, and their weights when the graph is opened."""


def open_converted(source: Path | Columns | Table | Files | str, given: Arguments, run: RunOptions) -> Graph:
    """Open a source that was recognised. Whatever holds no raw records is opened through its conversion."""
    if isinstance(source, Columns) and source.ids is not None:
        return _with_ids(open_records(source, given, run), source.ids, run)
    if isinstance(source, Path | Columns):
        return open_records(source, given, run)
    if isinstance(source, Table):
        return _open_table(source, given, run)
    if source == "-":
        with tempfile.TemporaryDirectory(dir=run.tmp_dir) as folder:
            files = spooled(Path(folder))
            return _opened(temporary(lambda into: _convert(files, into, given, run), run), None, given, run)
    named = Remote.of(source) if isinstance(source, str) else source
    key, path = _key(named, given), named.path if isinstance(named, Files) else None

    def make(into: Path) -> None:
        _convert(named, into, given, run)
        if _key(named, given) != key:
            raise EdgeFileChangedError(
                f"{named}: changed while it was converted. Open it again when it is complete"
            )

    stored = conversion(key, str(named), make, run, _COMPARED_LATER)
    try:
        graph = _opened(stored, path, given, run)
    except GraphFormatError:
        if not stored.found or _separate(given) is not None:
            raise
        stored = conversion(key, str(named), make, run, _COMPARED_LATER, damaged=True)
        graph = _opened(stored, path, given, run)
    if _separate(given) is None:
        sources = [str(each) for each in named.files] if isinstance(named, Files) else named.url
        graph._origin = _Conversion(sources, path, given, key)
    return graph


def _with_ids(graph: Graph, ids: list[str] | list[int], run: RunOptions) -> Graph:
    """Give the vertices ids, which lie in a temporary folder as long as the graph is in use."""
    if len(ids) == graph.num_vertices:
        before_polars_threads("ids of vertices")
        stored = temporary(lambda folder: pl.DataFrame({"id": ids}).write_parquet(folder / _IDS), run)
        graph._id_tables = (IdTable.of("vertex", 0, len(ids), stored.folder / _IDS),)
        graph._folder = stored.keep
    return graph


def _column(given: Arguments) -> int | str | bool | None:
    """Return the column of the weights, False for none, and None if they are not in a column."""
    weights = given.weights
    named = isinstance(weights, str) and not weights.endswith(".npy")
    return weights if named or isinstance(weights, int) else None


def _separate(given: Arguments) -> Any:
    """Return weights that are an array or a file, or None."""
    return given.weights if _column(given) is None else None


def _key(named: Files | Remote, given: Arguments) -> dict[str, Any]:
    if isinstance(named, Files):
        files = [[shown(os.path.abspath(file)), *state_of(file, changes=True)] for file in named.files]
    else:
        files = named.key
    options = {name: value for name, value in vars(given).items() if name not in ("io", "dtype")}
    options["columns"] = given.columns and list(given.columns)
    options["weights"], options["separate"] = _column(given), _separate(given) is not None
    return {"version": _core.__version__, "files": files, "options": options}


def _opened(stored: Stored, named: Path | None, given: Arguments, run: RunOptions) -> Graph:
    """Open what a conversion wrote, under the path that the user named."""
    ingested = (stored.folder / _GRAPH).is_dir()
    # Weights in a column lie beside the records.
    weights = False if _column(given) is False else _separate(given)
    given = Arguments(io=given.io, weights=weights)
    graph = open_records(stored.folder / (_GRAPH if ingested else EDGES), given, run, stored.remedy)
    if ingested:
        back = code(
            "fp.store.restore(result, graph=graph) brings",
            "-o with a .parquet and --restore, or `fastpart restore`, bring",
        )
        log.info("vertices are numbered by the rank of their ids. %s results back", back)
    graph.path = named
    graph._origin = None
    graph._folder = stored.keep
    return graph


def _convert(named: Files | Remote, into: Path, given: Arguments, run: RunOptions) -> None:
    """Write the records of files to a folder."""
    column = _column(given)
    weights = column if isinstance(column, str) else None
    if isinstance(named, Remote):
        given.refuse("comments", f"{named} is Parquet. They are for text")
        ends, strings = named.ids(given.columns, weights)
        if strings or given.relabel:
            return _ingest(named.url, ends, into, given, run)
        with tempfile.TemporaryDirectory(prefix=".copy-", dir=into) as folder:
            copies = named.copied(Path(folder), ends, weights)
            # Their columns are in this order.
            return _convert(copies, into, replace(given, columns=(1, 2)), run)
    with unpacked(named, into, run.memory_limit) as files:
        kind = one_kind(files)
        try:
            if kind == "text":
                said = _said_of_text(given)
                names = any(_core.text_holds_names(file, options=run, **said) for file in files.files)
                if names or given.relabel:
                    return _tabulated(files, into, names, given, run)
            else:
                given.refuse("comments", f"{files} is {kind}. They are for text")
            if kind == "parquet":
                ends, strings = ids_of(files, given.columns, weights)
                if strings or given.relabel:
                    return _ingest([str(file) for file in files.files], ends, into, given, run)
            elif kind != "text":
                given.refuse("relabel", f"{files} is {kind}. `fastpart convert --relabel` gives dense ids")
            of_records = weight_source(False if _separate(given) is not None else column, False, 1)
            known = vars(given) | {"dtype": None, "weights": of_records}
            convert_files(files, into / EDGES, How(**known, unsure=column is None, names=True), run)
        except _NameFoundError:
            _tabulated(files, into, True, given, run)


def _tabulated(files: Files, into: Path, names: bool, given: Arguments, run: RunOptions) -> None:
    """Write the records of text as a table, and ingest it."""
    with tempfile.TemporaryDirectory(prefix=".table-", dir=into) as folder:
        table = Path(folder, "table.csv")
        notes = _core.tabulate(files.files, table, names=names, options=run, **_said_of_text(given))
        for note in notes:
            log.info("%s: %s", files, note)
        if _column(given) not in (None, False):
            given = replace(given, weights="weight")
        as_ = "string" if names else "int"
        _ingest([str(table)], _ENDS, into, given, run, f"{files}: ", {"as": as_})


def _said_of_text(given: Arguments) -> dict[str, Any]:
    """Return what the arguments say of text."""
    column, unsure = _column(given), _column(given) is None and given.columns is None
    named = {"columns": given.columns, "comments": given.comments, "unsure": unsure}
    return named | {"column": None if column is False else column}


def _open_table(table: Table, given: Arguments, run: RunOptions) -> Graph:
    """Open a table whose ids are numbered, through a temporary folder that lives as long as the graph."""
    column = _column(given)
    frame = table.named_columns(column if isinstance(column, str) else None)
    if isinstance(column, str):
        given = replace(given, weights="weight")
    return _opened(temporary(lambda into: _ingest(frame, _ENDS, into, given, run), run), None, given, run)


def _ingest(
    files: Any,
    ends: tuple[str, str],
    into: Path,
    given: Arguments,
    run: RunOptions,
    where: str = "weights: ",
    kind: Mapping[str, str] | None = None,
) -> None:
    """Write a graph directory. Vertices are numbered by the rank of their ids. ``where`` begins errors of weights."""
    from .ingest import ingest

    for name in ("num_vertices", "layout"):
        given.refuse(name, "the vertices are those whose ids the table has. Leave it out")
    relation = {"files": files, "missing": "add"}
    for side, end in zip(_ENDS, ends, strict=True):
        relation[side] = {"vertex": {"column": end, **(kind or {})}}
    if (column := _column(given)) not in (None, False):
        if not isinstance(column, str):
            raise ParameterError("weights: name the column, where ids are strings or relabelled")
        relation["weight"] = column
    schema: dict[str, Any] = {"fastpart": 1, "vertices": {"vertex": {}}, "relations": {"edge": relation}}
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
    path: Path | None
    given: Arguments
    key: dict[str, Any]

    def reduced(self, graph: Graph) -> tuple[Any, ...]:
        return _reconverted, (self, graph.num_vertices, graph.num_edges, graph._identity)

    def arguments(self) -> None:
        """Return no arguments: another machine would convert the source again, into a cache of its own."""


def _reconverted(origin: _Conversion, n: int, m: int, identity: tuple[int, str] | None) -> Graph:
    """Open the source of a pickled graph, if it is still the same one."""
    named: Any = origin.sources
    if isinstance(named, list):
        named = Files(tuple(Path(file) for file in named), origin.path)
    graph = open_converted(named, origin.given, RunOptions())
    same = isinstance(graph._origin, _Conversion) and graph._origin.key == origin.key
    if (graph.num_vertices, graph.num_edges) != (n, m) or not (
        same or (identity is not None and graph.identify() == identity)
    ):
        raise EdgeFileChangedError(
            f"{shown(origin.path or str(named))}: changed after the graph was pickled. Open it again by {REOPENING}"
        )
    graph._identity = identity
    return graph
