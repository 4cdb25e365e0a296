"""Other people's edge lists as raw u32 edges with a sidecar."""

from __future__ import annotations

from . import _core, parameters
from .edges import KINDS, LAYOUTS, Edges, Sidecar, id_type, log, open_edges
from .errors import ParameterError
from .parameters import Progress, StrPath, choice, run_options
from .staging import beside, staged


def convert(
    source: StrPath,
    out: StrPath,
    *,
    relabel: bool = False,
    swap: bool = False,
    dtype: str | None = None,
    layout: str | None = None,
    num_vertices: int | None = None,
    kind: str = "undirected",
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> Edges:
    r"""Turn a text, ``.npy`` or raw edge list into raw u32 edges with a sidecar, in one streaming pass.

    Parameters
    ----------
    source : path
        Text as SNAP, KONECT, TSV or CSV files have it: two integer columns, further ones ignored, separated by
        blanks, tabs, a comma or a semicolon; comment lines begin with ``#``, ``%`` or ``//``; plain or gzip. Or a
        ``.npy`` file, or raw pairs of u32 or u64.
    out : path
        Raw little-endian u32 pairs; the sidecar ``OUT.json`` goes beside it.
    relabel : bool
        Give dense ids 0..n-1 in order of appearance, for ids that are large or have gaps. The map goes to
        ``OUT.ids.npy`` (uint64; row = new id, value = old id).
    swap : bool
        The source is raw and big-endian.
    dtype : {"u32", "u64"}, optional
        The source is raw, of this type.
    layout : {"rows", "edge_index"}, optional
        Which axis of a ``.npy`` counts the records.
    num_vertices : int, optional
        n, if there are isolated vertices behind the largest id.
    kind : {"undirected", "symmetric", "directed"}
        Goes into the sidecar; see :func:`open_edges`.
    threads, memory_limit, progress
        As in :func:`spring`.

    Returns
    -------
    Edges
        The output, open.

    Raises
    ------
    GraphFormatError
        With line and column, or record, of what is wrong; nothing is written.
    ParameterError
        The output is the input, or ``num_vertices`` is too small.

    Examples
    --------
    >>> import fastpart as fp, tempfile, pathlib
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "g.txt").write_text("# from to\n0 1\n1\t2\n")
    >>> fp.convert(folder / "g.txt", folder / "g.bin").num_edges
    2
    """
    origin, target = parameters.path("source", source), parameters.path("out", out)
    choice("kind", kind, KINDS)
    if layout is not None:
        choice("layout", layout, LAYOUTS)
    if num_vertices is not None:
        num_vertices = parameters.integer("num_vertices", num_vertices, 0, 2**32 - 1)
        if relabel:
            raise ParameterError("num_vertices: relabelled graphs have no isolated vertices")
    ids = beside(target, "ids.npy")
    for written in (target, Sidecar.beside(target), ids):
        if written.exists() and origin.exists() and written.samefile(origin):
            raise ParameterError(f"out: {parameters.shown(written)} is the input; name another file")
    with staged(target) as file:
        converted = _core.convert(
            origin,
            file,
            relabel=parameters.flag("relabel", relabel),
            swap=parameters.flag("swap", swap),
            dtype=id_type(dtype),
            layout=layout,
            num_vertices=num_vertices,
            options=run_options(threads, memory_limit, progress),
        )
        Sidecar("u32", converted["n"], converted["m"], kind, converted["checksum"]).write(file)
    for note in converted["notes"]:
        log.info("%s", note)
    if not relabel and ids.exists():
        log.info(
            "%s is left from an earlier conversion and does not belong to the new file", parameters.shown(ids)
        )
    edges = open_edges(target)
    edges.remember(converted["loops"], converted["checksum"])
    return edges
