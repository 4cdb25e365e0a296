"""Conversion between edge lists of many formats and raw u32 edges with a sidecar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Literal, Unpack, get_args

from ... import _core
from ...core import parameters
from ...core.notes import log
from ...core.options import Options, RunOptions, run_options, with_options
from ...core.parameters import Directedness, IdType, Layout, StrPath, choice
from ...errors import ParameterError
from ..graph import LAYOUTS, Graph, id_type, open_graph
from ..sidecars import DIRECTEDNESS, Sidecar
from ..staging import RAW, beside, staged
from ..weights import Weights
from . import parquet
from . import weights as record_weights

__all__ = ["FORMATS", "convert"]

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


@with_options
def convert(
    source: StrPath,
    out: StrPath,
    *,
    format: Format | None = None,
    relabel: bool = False,
    drop_loops: bool = False,
    dedup: bool = False,
    shuffle: bool = False,
    seed: int | None = 0,
    swap: bool = False,
    dtype: IdType | None = None,
    layout: Layout | None = None,
    num_vertices: int | None = None,
    directedness: Directedness | None = None,
    weights: int | str | Literal[False] | None = None,
    **options: Unpack[Options],
) -> Graph:
    r"""Convert an edge list of any format to raw u32 edges with a sidecar, or to another format.

    Parameters
    ----------
    source : path
        Text as in SNAP, KONECT, TSV or CSV files: the first two columns, or those that a header names source and
        target, src and dst, from and to, or u and v. Text with other names of more than two columns, or with three
        whole numbers a line and no header, needs ``weights=``. Columns are separated by blanks, tabs, a comma or a
        semicolon. Lines that begin with ``#``, ``%`` or ``//`` are comments. A METIS graph (``.graph``, ``.metis``).
        The weights of its edges are kept, those of its vertices are not. Text and METIS graphs may be compressed with
        gzip. A ``.parquet`` of two integer columns. A ``.binedgelist`` of the 2PS and HEP programs. A ``.npy`` file. Or
        raw pairs of u32 or u64.
    out : path
        The format follows from the suffix. ``.txt`` or ``.tsv``: one line ``u<tab>v`` per record. ``.graph`` or
        ``.metis``: each vertex with its neighbours, without loops and repeated pairs, which METIS forbids.
        ``.binedgelist``. ``.parquet``: columns ``source`` and ``target``, uint32. Any other suffix: raw little-endian
        u32 pairs, with the sidecar ``OUT.json`` beside them, and the weights of the records, if there are any, in
        ``OUT.weights.npy``. Text gets weights as the third column, Parquet as the column ``weight``, a METIS graph at
        its edges. A ``.binedgelist`` has no place for them.
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
        Seed of ``shuffle``, 0 to 2**64 - 1. None is 0.
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
        The column that holds the weights of the records: its number in text, from 3, or its name in Parquet. See
        :func:`open_graph` for their scale. Default: those of METIS graphs, and those beside a raw source. False leaves
        them out, and says that the first two columns of text hold the ids. ``dedup`` and ``shuffle`` do not keep
        weights.
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
    origin, target = parameters.path("source", source), parameters.path("out", out)
    if directedness is not None:
        choice("directedness", directedness, DIRECTEDNESS)
    if layout is not None:
        choice("layout", layout, LAYOUTS)
    if format is not None:
        choice("format", format, FORMATS)
    if num_vertices is not None:
        num_vertices = parameters.integer("num_vertices", num_vertices, 0, 2**32 - 1)
        if relabel:
            raise ParameterError("num_vertices: relabelled graphs have no isolated vertices")
    if parameters.flag("dedup", dedup) and directedness not in (None, "undirected"):
        raise ParameterError(
            f"directedness: {directedness!r}, but dedup keeps one record of both directions. Use 'undirected'"
        )
    seed, dtype = parameters.seed(seed), id_type(dtype)
    reordered = dedup or parameters.flag("shuffle", shuffle)
    weights_from = record_weights.weight_source(weights, reordered)
    run = run_options(**options)
    refuse_input(origin, target)
    sidecar = Sidecar.of(origin) if format is None and not swap else None
    if sidecar is not None:
        dtype = dtype or sidecar.dtype
        num_vertices = sidecar.n if num_vertices is None and not relabel else num_vertices
        directedness = directedness or sidecar.directedness
    directedness = "undirected" if directedness is None or dedup else directedness
    wanted = _OUTPUTS.get(target.suffix, "raw")
    writes = [*(RAW if wanted == "raw" else ()), *(["ids.npy"] if relabel else [])]
    with staged(target, writes, run) as file:
        raw = file if wanted == "raw" else beside(file, "raw")
        weights_from = record_weights.bring(weights_from, origin, raw, dtype, layout, reordered)
        with _readable(origin, format, raw, relabel, dtype, weights_from, run) as (
            readable,
            dtype,
            format,
            found,
        ):
            converted = _core.convert(
                readable,
                raw,
                format=format,
                relabel=parameters.flag("relabel", relabel),
                swap=parameters.flag("swap", swap),
                dtype=dtype,
                layout=layout,
                num_vertices=num_vertices,
                drop_loops=parameters.flag("drop_loops", drop_loops),
                dedup=dedup,
                shuffle=seed if shuffle else None,
                weights=found,
                column=weights_from.column,
                unsure=weights is None,
                options=run,
            )
        weighted = record_weights.take(weights_from, raw, converted.graph.m)
        notes = list(converted.notes)
        if wanted == "raw":
            description = None if weighted is None else record_weights.write(weighted, file, run)
            known = converted.graph
            Sidecar("u32", known.n, known.m, directedness, known.checksum, description).write(file)
        else:
            graph = open_graph(
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
    if not relabel and ids.exists():
        log.info("%s does not belong to the new file", parameters.shown(ids))
    if wanted == "raw":
        graph = open_graph(target)
    graph.remember(converted.graph.loops, converted.graph.checksum)
    return graph


@contextmanager
def _readable(
    origin: Path,
    format: Format | None,
    raw: Path,
    relabel: bool,
    dtype: IdType | None,
    weights_from: record_weights.WeightSource,
    options: RunOptions,
) -> Iterator[tuple[Path, IdType | None, Format | None, Literal["file", "source"] | None]]:
    """Yield a file that the core can read, with its dtype and format, and where it finds weights.

    For Parquet this is a copy beside the output.
    """
    if format != "parquet" and (format is not None or dtype is not None or origin.suffix != ".parquet"):
        yield origin, dtype, format, weights_from.found
        return
    if dtype is not None:
        raise ParameterError("format: dtype= applies to raw pairs only. Leave it out")
    copy = beside(raw, "columns")
    try:
        weights = None if weights_from.name is None else beside(raw, "weights.in")
        wide = parquet.read(origin, copy, relabel, options, weights_from.name, weights)
        yield copy, wide, None, "file" if weights_from.name is not None else weights_from.found
    finally:
        copy.unlink(missing_ok=True)


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
    graph.path = None
    if beside(raw, "ids.npy").exists():
        beside(raw, "ids.npy").rename(beside(target, "ids.npy"))
    return notes
