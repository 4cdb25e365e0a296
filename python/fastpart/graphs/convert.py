"""Conversion between edge lists of many formats and raw u32 edges with a sidecar."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Unpack, get_args

import numpy as np

from .. import _core
from ..core import parameters
from ..core.notes import log
from ..core.option_groups import OptionObject
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.parameters import Directedness, IdType, Layout, StrPath, choice
from ..errors import GraphFormatError, ParameterError, arg
from . import parquet
from .files import Files, Kind, files_of, is_standard_input, one_kind, renamed, spooled, unpacked
from .graph import Graph, core_of, id_type, open_records
from .sidecars import RAW, Sidecar, beside, staged, weights_beside
from .sources import Arguments, RecordOptions, mirrored
from .tables import asked
from .weights import Weights, scaled

Format = Literal["text", "metis", "binedgelist", "parquet"]
FORMATS: tuple[Format, ...] = get_args(Format)
"""Values of ``format=``."""

_OUTPUTS = {
    ".txt": "text",
    ".tsv": "text",
    ".graph": "metis",
    ".metis": "metis",
    ".binedgelist": "binedgelist",
    ".parquet": "parquet",
}
"""Formats of outputs by suffix. All others are raw."""

_BLOCK = 1 << 18
"""Weights per step."""


@with_options(groups=[RecordOptions, RunOptions])
def convert(
    source: StrPath | Sequence[StrPath],
    out: StrPath,
    *,
    columns: Sequence[int | str] | None = None,
    comments: str | None = None,
    format: Format | None = None,
    relabel: bool = False,
    drop_loops: bool = False,
    dedup: bool = False,
    shuffle: bool = False,
    seed: int = 0,
    swap: bool = False,
    dtype: IdType | None = None,
    layout: Layout | None = None,
    num_vertices: int | None = None,
    directedness: Directedness | None = None,
    weights: int | str | Literal[False] | None = None,
    records: OptionObject | None = None,
    run: OptionObject | None = None,
    **options: Unpack[Options],
) -> Graph:
    r"""Convert an edge list of any format to raw u32 edges with a sidecar, or to another format.

    Parameters
    ----------
    source : path or list of paths
        Text as in SNAP, KONECT, TSV or CSV files: the first two columns, or those that a header names source and
        target, src and dst, from and to, u and v, or head and tail. Text with other names of more than two columns, or
        with three whole numbers a line and no header, needs ``columns=``. Columns are separated by blanks, tabs, a
        comma or a semicolon, in all lines by the same one, and all lines have as many. A METIS graph (``.graph``,
        ``.metis``). The weights of its edges are kept, those of its vertices are not. A matrix of MatrixMarket
        (``.mtx``), whose entries are the edges. A ``.parquet`` of two integer columns. A ``.binedgelist`` of the 2PS
        and HEP programs. A ``.npy`` file. Or raw pairs of u32 or u64. Files may be compressed with gzip, bzip2, xz or
        zstd. Several files of one format: a list of paths, a glob, or a folder, whose files are read in the order of
        their paths. ``-`` is the standard input.
    out : path
        The format follows from the suffix. ``.txt`` or ``.tsv``: one line ``u<tab>v`` per record. ``.graph`` or
        ``.metis``: each vertex with its neighbours, without loops and repeated pairs, which METIS forbids.
        ``.binedgelist``. ``.parquet``: columns ``source`` and ``target``, uint32. Any other suffix: raw little-endian
        u32 pairs, with the sidecar ``OUT.json`` beside them, and the weights of the records, if there are any, in
        ``OUT.weights.npy``. Text gets weights as the third column, Parquet as the column ``weight``, a METIS graph at
        its edges. A ``.binedgelist`` has no place for them.
    columns : pair of str or int, optional
        The columns of text and Parquet that hold the ids of sources and targets: by their names, or by their numbers
        from 1. Default: those with known names, else the only two.
    comments : str, optional
        How lines of text begin that are comments. Default: "#", "%" and "//". "" says that there are none.
    format : {"text", "metis", "binedgelist", "parquet"}, optional
        Format of the source. Default: by its suffix.
    relabel : bool
        Give dense ids 0..n-1 in order of appearance, for ids that are large or have gaps. The map goes to
        ``OUT.ids.npy`` (uint64, row = new id, value = old id).
    drop_loops : bool
        Leave out records whose two ids are equal.
    dedup : bool
        Keep the first record of each undirected pair, (u, v) or (v, u), in the order of the source. The output is
        "undirected".
    shuffle : bool
        Put the records (those that are left) in a random order, which depends on ``seed`` and their number only.
    seed : int, optional
        Seed of ``shuffle``, 0 to 2**64 - 1.
    swap : bool
        The source is raw and big-endian.
    dtype : {"u32", "u64"}, optional
        The source is raw, with ids of this type. Default: as its sidecar says.
    layout : {"rows", "edge_index"}, optional
        The axis of a ``.npy`` that counts the records.
    num_vertices : int, optional
        n, if isolated vertices follow the largest id. Default: as the source or its sidecar says.
    directedness : {"undirected", "symmetric", "directed"}, optional
        The directedness in the sidecar. See :func:`open_graph`. Default: that of the source's sidecar, or "undirected".
    weights : int, str or False, optional
        The column that holds the weights of the records: its name, or its number in text. 3 reads the values of a
        matrix. See :func:`open_graph` for their scale. Default: those of METIS graphs, and those beside a raw source.
        False leaves them out, and says that the first two columns of text hold the ids. ``dedup`` and ``shuffle`` do
        not keep weights.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    Graph
        The output, opened. If its format is not raw, the same records in a nameless file that exists as long as this
        object.

    Raises
    ------
    GraphFormatError
        With the line and column, or the record, of the error. Nothing is written.
    ParameterError
        The output is the input, or ``num_vertices`` is too small.
    MemoryBudgetError
        The output is a METIS graph, and its adjacency exceeds the budget.

    Notes
    -----
    Records are streamed. The memory does not grow with the source, except for ``relabel`` (up to 39 bytes per id),
    ``dedup`` (one bit per record) and the output of METIS graphs (the adjacency, 8 bytes per record). During the call,
    ``dedup`` and ``shuffle`` need 24 to 32 bytes of disk per record beside ``out``, Parquet input needs 8 to 16, and
    outputs that are not raw need 8. Weights need 8 more, and 4 bytes of memory per record.

    Examples
    --------
    >>> import fastpart as fp, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "g.txt").write_text("# from to\n0 1\n1\t2\n")
    >>> fp.convert(folder / "g.txt", folder / "g.bin").num_edges
    2
    """
    if format is not None:
        choice("format", format, FORMATS)
    reordered, seed = parameters.flag("dedup", dedup), parameters.seed(seed)
    reordered = parameters.flag("shuffle", shuffle) or reordered
    how = How(
        columns=asked(columns),
        comments=comments,
        relabel=relabel,
        dtype=id_type(dtype),
        num_vertices=num_vertices,
        directedness=directedness,
        layout=layout,
        weights=weight_source(weights, reordered, 3 if columns is None else 1),
        format=format,
        unsure=weights is None,
        swap=parameters.flag("swap", swap),
        drop_loops=parameters.flag("drop_loops", drop_loops),
        dedup=dedup,
        shuffle=seed if shuffle else None,
    ).checked()
    if dedup and directedness not in (None, "undirected"):
        raise ParameterError(
            f"directedness: {directedness!r}, but dedup keeps one record of both directions. Use 'undirected'"
        )
    if relabel and num_vertices is not None:
        raise ParameterError("num_vertices: relabelled graphs have no isolated vertices")
    limits, target = run_options(**options), parameters.path("out", out)
    if not is_standard_input(source):
        known, graph = convert_files(files_of("source", source), target, how, limits)
    else:
        import tempfile  # here, because its import is slow

        with tempfile.TemporaryDirectory(dir=limits.tmp_dir) as folder:
            known, graph = convert_files(spooled(Path(folder)), target, how, limits)
    graph = open_records(target) if graph is None else graph
    graph.remember(known.loops, known.checksum)
    return graph


@dataclass(frozen=True)
class WeightSource:
    """The place where a conversion finds weights, and the scale of weights beside raw records.

    ``given``: the number of a column of text, the name of a column, False for none, or None for what the source has.
    """

    given: int | str | Literal[False] | None
    found: Literal["file", "source"] | None = "source"
    scale: float = 1.0

    @property
    def column(self) -> int | str | None:
        """The column of text, by number from 1 or by name."""
        return None if self.given is False else self.given

    @property
    def name(self) -> str | None:
        """The column of a table."""
        return self.given if isinstance(self.given, str) else None


def weight_source(given: int | str | Literal[False] | None, reordered: bool, first: int = 3) -> WeightSource:
    """Check the given parameter. Columns of weights have a number of at least ``first``.

    Records that are dropped or put in another order lose their weights.
    """
    if given is False or (given is None and reordered):
        return WeightSource(given, None)
    if given is not None and not isinstance(given, str):
        given = parameters.integer("weights", given, first, 2**31 - 1)
    return WeightSource(given)


@dataclass(frozen=True, kw_only=True)
class How(Arguments):
    """The checked parameters of a conversion."""

    dtype: IdType | None = None
    weights: WeightSource
    format: Format | None = None
    names: bool = False
    """Whether the caller could read text of names, too."""
    unsure: bool = True
    """Whether nothing says which columns of text hold the ids."""
    swap: bool = False
    drop_loops: bool = False
    dedup: bool = False
    shuffle: int | None = None
    """The seed."""


def convert_files(
    files: Files, target: Path, how: How, run: RunOptions
) -> tuple[_core.Identity, Graph | None]:
    """Convert files. Return loops and checksum, and the opened graph if the output is not raw."""
    graph = None
    for origin in files.files:
        refuse_input(origin, target)
    only = files.files[0] if len(files.files) == 1 else None
    how = _with_sidecar(how, only)
    wanted = _OUTPUTS.get(target.suffix, "raw")
    writes = [*(RAW if wanted == "raw" else ()), *(["ids.npy"] if how.relabel else [])]
    with staged(target, writes, run) as file, unpacked(files, file.parent, run.memory_limit) as plain:
        raw = file if wanted == "raw" else beside(file, "raw")
        weights_from = how.weights if only is None else _brought(how, only, raw)
        with _readable(plain, raw, replace(how, weights=weights_from), run) as source:
            converted = _core.convert(
                target=raw,
                **source,
                unsure=how.unsure and how.columns is None,
                **{name: getattr(how, name) for name in _OF_CORE},
                options=run,
            )
        directedness = "undirected" if how.dedup else how.directedness or _directedness(raw, converted)
        weighted = _taken(weights_from, raw, converted.graph.m, str(files))
        notes = list(converted.notes)
        if wanted == "raw":
            description = None if weighted is None else write_weights(weighted, file, run)
            known = converted.graph
            Sidecar("u32", known.n, known.m, directedness, known.checksum, description).write(file)
        else:
            graph = open_records(
                raw,
                dtype="u32",
                num_vertices=converted.graph.n,
                directedness=directedness,
                weights=False if weighted is None else weighted.array,
            )
            if graph._weights is not None and weighted is not None:
                graph._weights = replace(graph._weights, scale=weighted.scale)
            notes += _write(graph, raw, file, wanted, run)
    for note in notes:
        log.info("%s", note)
    ids = beside(target, "ids.npy")
    if not how.relabel and ids.exists():
        log.info("%s does not belong to the new file", parameters.shown(ids))
    return converted.graph, graph


def _directedness(raw: Path, converted: _core.Converted) -> Directedness:
    """Return the meaning of a record. A matrix that is not symmetric by its header lists each direction by itself."""
    if not converted.both or not converted.graph.m:
        return "undirected"
    records = np.memmap(raw, "<u4", "r").reshape(-1, 2)
    return "symmetric" if mirrored(records[:, 0], records[:, 1]) else "directed"


def _with_sidecar(how: How, only: Path | None) -> How:
    """Complete the parameters from the sidecar of the source, if there is one."""
    if only is None or how.format is not None or how.swap or (sidecar := Sidecar.of(only)) is None:
        return how
    if sidecar.typed is not None:
        log.info(
            "%s: its types and relations are left out. The output is a plain graph", parameters.shown(only)
        )
    stated = sidecar.n if how.num_vertices is None and not how.relabel else how.num_vertices
    directedness = how.directedness or sidecar.directedness
    return replace(how, dtype=how.dtype or sidecar.dtype, num_vertices=stated, directedness=directedness)


_OF_CORE = (
    *("comments", "names", "num_vertices", "max_vertices"),
    *("layout", "relabel", "swap", "drop_loops", "dedup", "shuffle"),
)
"""Fields of :class:`How` that the core takes unchanged."""


@contextmanager
def _readable(files: Files, raw: Path, how: How, options: RunOptions) -> Iterator[dict[str, Any]]:
    """Yield arguments of the core: files that it can read, and the columns there. For Parquet the file is a copy."""
    kind: Kind = (
        "raw" if how.format is None and (how.dtype is not None or how.swap) else one_kind(files, how.format)
    )
    weights_from, named = how.weights, how.weights.column
    if how.comments is not None and kind != "text":
        raise ParameterError(f"comments: {files} is {kind}. They are for text")
    if kind != "parquet":
        if named is not None and kind not in ("text", "matrix"):
            raise ParameterError(f"weights: {files} is {kind}, and has no column {named!r}")
        by = 3 if kind == "matrix" and named == "data" else named
        columns = {"columns": how.columns, "column": by}
        yield dict(
            sources=files.files, dtype=how.dtype, format=how.format, weights=weights_from.found, **columns
        )
        return
    if how.dtype is not None or how.swap:
        raise ParameterError(f"format: {arg('dtype')} applies to raw pairs only. Leave it out")
    copy = beside(raw, "columns")
    try:
        weights = None if weights_from.name is None else beside(raw, "weights.in")
        wide = parquet.read(files, copy, how.relabel, options, how.columns, weights_from.name, weights)
        found = weights_from.found if weights is None else "file"
        with renamed({copy: str(files)}):
            columns = {"columns": None, "column": None}
            yield {"sources": [copy], "dtype": wide, "format": None, "weights": found, **columns}
    finally:
        copy.unlink(missing_ok=True)


def _brought(how: How, origin: Path, raw: Path) -> WeightSource:
    """Write the weights beside a file of records where the core finds them, if there are any."""
    if how.weights.given is not None or not origin.exists():
        return how.weights
    file, described = weights_beside(origin, Sidecar.read(origin))
    if file is None:
        return how.weights
    if how.dedup or how.shuffle is not None:
        raise ParameterError(
            f"weights: dedup and shuffle do not keep the weights in {parameters.shown(file)}. Leave these out, or pass "
            f"{arg('weights', False)}"
        )
    found = Weights.of(file)
    core = _weighted(origin, found, RunOptions(), how)  # compares their number with the records
    if described:
        found = found.measured(core, RunOptions()).described(described, origin)
    with beside(raw, "weights.in").open("xb") as written:
        array = found.array
        for first in range(0, len(array), _BLOCK):
            array[first : first + _BLOCK].astype("<f8").tofile(written)
    return replace(how.weights, found="file", scale=found.scale)


def _taken(weights_from: WeightSource, raw: Path, m: int, name: str) -> Weights | None:
    """Return the scaled weights of the source called ``name`` that the core wrote, and remove its files."""
    file = beside(raw, "weights.f64")
    beside(raw, "weights.in").unlink(missing_ok=True)
    if not file.exists():
        return None
    given = np.memmap(file, "<f8", "r") if file.stat().st_size else np.empty(0)
    file.unlink()
    if len(given) != m or not m:
        if weights_from.given is not None and m:
            raise ParameterError(f"weights: the source has no column {weights_from.given!r} of weights")
        return None
    values, scale = scaled(given)
    if not values.any():
        raise GraphFormatError(
            f"{name}: all weights are 0, so no record would count. Leave them out: {arg('weights', False)}"
        )
    return Weights(values, scale * weights_from.scale)


def write_weights(weights: Weights, file: Path, options: RunOptions) -> dict[str, Any]:
    """Write the weights beside a raw file, and return their entry for its sidecar."""
    target = Weights.beside(file)
    with target.open("xb") as written:
        np.save(written, weights.array)
        written.flush()
        os.fsync(written.fileno())
    weights = replace(weights, source=target)
    return weights.measured(_weighted(file, weights, options, Arguments(dtype="u32")), options).description


def _weighted(file: Path, weights: Weights, run: RunOptions, given: Arguments) -> _core.EdgeSource:
    """Open records with weights, of any number of vertices."""
    given = Arguments(dtype=given.dtype, layout=given.layout, num_vertices=2**32 - 1)
    return core_of(file, given, weights, run)


def refuse_input(origin: Path, target: Path) -> None:
    """Refuse to overwrite the input, also under another name."""
    for written in (target, Sidecar.beside(target), Weights.beside(target), beside(target, "ids.npy")):
        if written.exists() and origin.exists() and written.samefile(origin):
            raise ParameterError(f"out: {parameters.shown(written)} is the input. Name another file")


def _write(graph: Graph, raw: Path, target: Path, format: str, options: RunOptions) -> list[str]:
    """Write the edges of the file ``raw`` in another format, delete ``raw``, and return notes."""
    notes = []
    if format == "parquet":
        parquet.write(raw, graph.num_edges, target, options, graph._weights)
    else:
        scale = graph.weight_scale
        notes = _core.write_edges(graph._source, target, format=format, scale=scale, options=options)
    if format == "binedgelist" and graph._weights is not None:
        notes.append("the weights are left out, because a .binedgelist has no place for them")
    raw.unlink()
    graph.path = graph._origin = None
    if beside(raw, "ids.npy").exists():
        beside(raw, "ids.npy").rename(beside(target, "ids.npy"))
    return notes
