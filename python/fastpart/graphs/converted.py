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
from ..core.notes import log
from ..core.options import RunOptions
from ..core.parameters import Directedness, Layout, choice, integer, shown
from ..errors import EdgeFileChangedError, GraphFormatError, ParameterError
from .conversion_cache import Stored, conversion, temporary
from .convert import How, convert_files, parquet
from .convert.inputs import Files, estimate, first_lines, one_kind, spooled, unpacked
from .convert.weights import weight_source
from .directory_opening import open_directory
from .ends import PAIRS, Pair
from .graph import LAYOUTS, Graph, open_records
from .graph_directory import EDGES
from .remote import Remote, is_url
from .sidecars import DIRECTEDNESS
from .tables import Table

_GRAPH = "graph"


@dataclass(frozen=True)
class Given:
    """The arguments of :func:`fastpart.open_graph` for any source."""

    columns: Pair | None = None
    relabel: bool = False
    num_vertices: int | None = None
    directedness: Directedness | None = None
    io: Any = "mmap"
    layout: Layout | None = None
    max_vertices: int | None = None
    weights: Any = None

    def __post_init__(self) -> None:
        if self.num_vertices is not None:
            integer("num_vertices", self.num_vertices, 0, 2**32 - 1)
        if self.max_vertices is not None:
            integer("max_vertices", self.max_vertices, 1, 2**32 - 1)
        if self.directedness is not None:
            choice("directedness", self.directedness, DIRECTEDNESS)
        if self.layout is not None:
            choice("layout", self.layout, LAYOUTS)
        choice("io", self.io, ("mmap", "read"))

    def refuse(self, name: str, why: str) -> None:
        """Refuse a parameter that was given."""
        if getattr(self, name):
            raise ParameterError(f"{name}: {why}")

    def of_records(self) -> dict[str, Any]:
        """Return the arguments for raw records and arrays."""
        return {name: value for name, value in vars(self).items() if name not in ("columns", "relabel")}

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

    size = named.estimate() if isinstance(named, Remote) else estimate(named)
    stored = conversion(key, str(named), size, make, run)
    graph = _opened(stored, named.path, given, run)
    if given.separate_weights is None:
        sources = [str(each) for each in named.files] if isinstance(named, Files) else named.url
        graph._origin = _Conversion(sources, None if named.path is None else str(named.path), given, key)
    return graph


def _key(named: Files | Remote, given: Given) -> dict[str, Any]:
    if isinstance(named, Files):
        states = ((os.path.abspath(file), file.stat()) for file in named.files)
        files = [[shown(path), state.st_size, state.st_mtime_ns] for path, state in states]
    else:
        files = named.key
    return {"version": _core.__version__, "files": files, "options": given.key}


def _opened(stored: Stored, named: Path | None, given: Given, run: RunOptions) -> Graph:
    """Open what a conversion wrote, under the path that the user named."""
    separate = given.separate_weights
    if (stored.folder / _GRAPH).is_dir():
        graph = open_directory(stored.folder / _GRAPH, run, given.io, _of_directory(given))
        log.info(
            "vertices are numbered by the rank of their ids. fp.restore(result, graph=graph) brings results back"
        )
    else:
        graph = open_records(stored.folder / EDGES, io=given.io, weights=separate, options=run)
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
    with unpacked(named, into) as files:
        if (table := _table_of_strings(files, given)) is not None:
            _ingest(table, into, given, run)
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
        )
        convert_files(files, into / EDGES, how, run)


def _table_of_strings(files: Files, given: Given) -> dict[str, Any] | None:
    """Return the relation of a schema, if the ids are strings or are to be relabelled. Else None."""
    kind = one_kind(files)
    if kind == "parquet":
        weights = given.weight_column if isinstance(given.weight_column, str) else None
        ends, strings = parquet.ids_of(files, given.columns, weights)
        format = None
    elif kind == "text":
        ends, strings, format = _text_of(files, given.columns)
    else:
        given.refuse("relabel", f"{files} is {kind}. `fastpart convert --relabel` gives dense ids")
        return None
    if not (strings or given.relabel):
        return None
    table: dict[str, Any] = {"files": [str(file) for file in files.files]}
    as_ = {} if strings or kind == "parquet" else {"as": "int"}
    table |= {
        name: {"vertex": {"column": end} | as_} for name, end in zip(("source", "target"), ends, strict=True)
    }
    return table if format is None else table | {"format": {"csv": format}}


def _text_of(files: Files, columns: Pair | None) -> tuple[tuple[str, str], bool, dict[str, Any]]:
    """Return the columns of the ids of text by name, whether they are strings, and how the text is written.

    Only columns that a header or the caller names are taken for strings. Anything else is a mistake among numbers.
    """
    file = files.files[0]
    lines = first_lines(file, files.name_of(file))
    separator = next((each for each in ",;\t" if lines and each in lines[0]), " ")
    names = _fields(lines[0], separator) if lines else []
    small = [name.lower() for name in names]
    pair = next((pair for pair in PAIRS if pair[0] in small and pair[1] in small), None)
    header = any(isinstance(each, str) for each in columns or ()) or pair is not None
    format = {"separator": separator, "header": header}
    if columns is None and pair is None:
        return ("column_1", "column_2"), False, format
    places = [small.index(name) for name in pair] if columns is None and pair else []
    for each in columns or ():
        places.append(each - 1 if isinstance(each, int) else names.index(each) if each in names else -1)
    known = names if header else [f"column_{number + 1}" for number in range(len(names))]
    if any(not 0 <= place < len(known) for place in places):
        return ("", ""), False, format  # the conversion says what is wrong
    rows = [_fields(line, separator) for line in lines]
    named = [len(row) == len(names) and any(not _is_number(row[place]) for place in places) for row in rows]
    if not header and named == [True, True]:
        raise ParameterError(
            f"columns: {files} holds strings, and nothing says whether its first line is a header. Name the columns as "
            "it does, or pass a frame: polars.read_csv(..., has_header=False)"
        )
    return (known[places[0]], known[places[1]]), header and named[1:] == [True], format


def _fields(line: str, separator: str) -> list[str]:
    import csv

    if separator == " ":
        return line.split()
    return [field.strip() for field in next(csv.reader([line], delimiter=separator, skipinitialspace=True))]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text == ""  # an empty field is no id
    return True


def open_strings(table: Table, given: Given, run: RunOptions) -> Graph:
    """Open a frame whose ids are strings, through a temporary folder that lives as long as the graph."""
    ends = {"source": {"vertex": "source"}, "target": {"vertex": "target"}}
    weights = given.weight_column if isinstance(given.weight_column, str) else None
    relation = {"files": table.named_columns(weights), **ends}
    named = given if weights is None else replace(given, weights="weight")
    return _opened(temporary(lambda into: _ingest(relation, into, named, run), run), None, named, run)


def _ingest(relation: dict[str, Any], into: Path, given: Given, run: RunOptions) -> None:
    """Write a graph directory. Vertices are numbered by the rank of their ids."""
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
    with _without_schema():
        ingest(schema, into / _GRAPH, **vars(run))


@contextmanager
def _without_schema() -> Iterator[None]:
    """Take the schema, which the user does not know, out of errors."""
    try:
        yield
    except (GraphFormatError, ParameterError) as error:
        text = re.sub(r", or say `[^`]*` for '\w+' in the schema", "", str(error))
        text = re.sub(r"^relations\.edge\.weight: ", "weights: ", text)
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
            f"{shown(origin.path or str(named))}: changed after the graph was pickled. Open it again by fp.open_graph"
        )
    graph._identity = identity
    return graph
