"""One door to graphs: whatever holds edges is recognised, converted if need be, and opened as a :class:`Graph`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

import numpy.typing as npt

from ..core.option_groups import OptionObject
from ..core.options import Options, run_options, with_options
from ..core.parameters import Directedness, IdType, Layout, StrPath
from ..errors import ParameterError
from .converted import open_converted
from .files import names_files, recognised_files
from .graph import Graph
from .sources import Arguments, RecordOptions, recognised_object
from .tables import asked


@with_options(groups=[RecordOptions])
def open_graph(
    source: Any,
    *,
    columns: Sequence[int | str] | None = None,
    comments: str | None = None,
    relabel: bool = False,
    dtype: IdType | npt.DTypeLike | None = None,
    num_vertices: int | None = None,
    directedness: Directedness | None = None,
    io: Literal["mmap", "read"] = "mmap",
    layout: Layout | None = None,
    max_vertices: int | None = None,
    weights: npt.ArrayLike | StrPath | int | Literal[False] | None = None,
    records: OptionObject | None = None,
    **options: Unpack[Options],
) -> Graph:
    """Open a graph: files of edges in any format, an array or a table that holds them, or a graph of another library.

    Parameters
    ----------
    source : path, list of paths, array, pair of arrays, table, graph of another library or Graph
        A file of headerless little-endian pairs of u32 (or u64) ids, or a ``.npy`` file: these are read in place. Any
        other file that :func:`convert` reads: text, Parquet, METIS, MatrixMarket, also compressed. A list of such
        files, a glob, a folder, ``-`` for the standard input, or the URL of a Parquet file. These are converted once,
        into the folder ``fastpart`` of the user's cache. A graph directory, as ``fastpart ingest`` writes it. An array
        (numpy, or anything with ``__dlpack__``) of shape (m, 2), or (2, m) if m != 2 or ``layout="edge_index"``. A
        torch ``edge_index`` of shape (2, m), or a square sparse tensor of torch. A list of pairs. A pair (sources,
        targets) of arrays, or a tuple of two lists. A table of integers or strings (Polars, pandas, or anything with
        ``__arrow_c_stream__``). A square matrix of scipy.sparse, whose stored entries are the edges. A graph of
        networkx, igraph or rustworkx, a homogeneous graph of DGL, a ``Data`` or a data set of one graph of PyG, or a
        graph of OGB, with or without its labels. Arrays of 32 or 64 bit integers are read in place, never copied as a
        whole. Do not write to them during a call. Smaller integers are copied. Strings are numbered, as those of a
        table. A Polars LazyFrame is streamed to a temporary file. Nodes of networkx that are not 0 to n-1 are numbered
        in their order: vertex i is ``list(graph)[i]``. If all of them are text or all are integers, they are the ids of
        the vertices, as those of a table are. So is the attribute ``name`` of igraph, if no name is there twice.
    columns : pair of str or int, optional
        The columns of text, Parquet or a frame that hold the ids of sources and targets: by their names, or by their
        numbers from 1. Default: those named source and target, src and dst, from and to, u and v, or head and tail,
        else the only two. Names of columns of text also say that ids may be names: they are, unless all are numbers.
    comments : str, optional
        How lines of text begin that are comments, such as "#". Default: "#", "%" and "//". Among ids that are names,
        these count before the header or the first record only, and a note counts such lines behind it. A mark that is
        given counts anywhere. "" says that there are no comments.
    relabel : bool
        The ids of a table or an array are numbers with gaps, or beyond 2^32 - 2. Vertices are then numbered by the rank
        of their ids. This is what always happens if the ids are strings. ``fastpart.store.restore`` brings
        results back to them.
    dtype : {"u32", "u64", "i32", "i64"}, optional
        Type of the ids of a raw file. Default: the sidecar's, or u32. Without a sidecar the first bytes are checked:
        archives, u64 ids and big-endian files are refused.
    num_vertices : int, optional
        Number of vertices n. Default: that of the sidecar, or of the graph of another library. Else the largest id + 1,
        which takes one pass over the records. Isolated vertices behind the largest id are then lost, and for a raw file
        this is a :class:`~fastpart.errors.GraphWarning`.
    directedness : {"undirected", "symmetric", "directed"}, optional
        Meaning of a record for training: an edge in both directions, one of the two directions of such an edge (the
        source lists both), or a directed edge. Default: that of the sidecar, or of a graph of networkx, igraph or
        rustworkx. Sparse matrices and graphs of DGL, PyG and OGB store each direction by itself: they are "symmetric"
        if every edge has its opposite, else "directed". For a triangular matrix say "undirected". All others are
        "undirected".
    io : {"mmap", "read"}
        "read" never maps the file. Use it where others may truncate the file during a run. It is about files that are
        named, here and as ``weights``. Temporary files are mapped in any case.
    layout : {"rows", "edge_index"}, optional
        Which axis of a two-dimensional array counts the records.
    max_vertices : int, optional
        The largest n that is accepted from the ids. Default: an n above 16 million is refused as a mistake if it is
        also more than 2,048 times the number of records.
    weights : array, path of a .npy, name, int or False, optional
        One number of at least 0 per record. They multiply the cut of :func:`multilevel` and :func:`partition`, and
        :func:`evaluate` measures the weighted cut. For a table or a graph of another library: the name of a column (for
        text also its number from 1), of an edge attribute (1 where it is missing in networkx), or "data" for a sparse
        matrix. Whole numbers up to 2**32 - 1 are kept. Others are multiplied once by a power of two, ``weight_scale``,
        and rounded to 31 bits. Default: for a file ``FILE.weights.npy`` beside it, if there is one, and the weights of
        a METIS graph. False leaves them out.
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
        An argument contradicts the sidecar or the ``.npy`` header, or does not fit the source.
    TypeError
        The source is of a type, or an array of a dtype, that cannot hold edges. The text says what to pass.

    Notes
    -----
    A converted file is found again by its path, size and time of change, and by the arguments. Its conversion takes 8
    bytes per record, and a note says how much it took. ``fastpart conversions`` lists what is kept, and
    ``fastpart conversions --clear`` removes it. Where the cache cannot be written, the conversion is a temporary file
    that lives as long as the graph. The standard input and frames are never kept.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> graph = fp.open_graph(np.array([[0, 1], [1, 2], [2, 0]], dtype=np.uint32))
    >>> graph.num_vertices, graph.num_edges
    (3, 3)
    """
    run = run_options(**options)
    given = Arguments(
        columns=asked(columns),
        comments=comments,
        relabel=relabel,
        dtype=dtype,
        num_vertices=num_vertices,
        directedness=directedness,
        io=io,
        layout=layout,
        max_vertices=max_vertices,
        weights=weights,
    ).checked()
    if isinstance(source, Graph):
        for name in ("weights", "columns", "comments"):
            if getattr(given, name) is not None:
                raise ParameterError(f"{name}: the graph is open already. Open its source with {name}=")
        return source
    if names_files(source):
        return open_converted(recognised_files(source, given), given, run)
    if isinstance(getattr(source, "graph", None), Graph):
        raise TypeError(
            f"graph: expected a graph, got {type(source).__name__}, which has one. Pass its .graph"
        )
    return open_converted(*recognised_object(source, given, run), run)
