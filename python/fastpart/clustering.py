"""Clusters of vertices: how many there are follows from the graph."""

from __future__ import annotations

from typing import Any, Literal, get_args

from . import _core, parameters
from .errors import ParameterError
from .graph import open_graph
from .parameters import Progress, StrPath, run_options
from .results import Clustering

Method = Literal["modularity", "hollocou"]
METHODS: tuple[Method, ...] = get_args(Method)


def cluster(
    graph: Any,
    method: Method = "modularity",
    *,
    max_size: int | None = None,
    max_volume: int | None = None,
    batch: int | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    tmp_dir: StrPath | None = None,
    progress: Progress | None = None,
) -> Clustering:
    """Group the vertices into clusters with many edges inside and few between.

    ``"modularity"`` streams the vertices with their neighbours: each joins the neighbouring cluster that gains the
    most modularity, or founds one; a second pass and rounds over those whose neighbours moved improve on that. SIGMA
    begins with it. It needs the adjacency (8 bytes per edge, in a mapped file if there is less memory) and 17 bytes
    per vertex. ``"hollocou"`` looks at each edge once, in stream order, with 32 bytes per vertex; SPRING and 2PS begin
    with it. Its clusters are much worse: half the modularity on many graphs.

    Parameters
    ----------
    graph : path, array or Graph
        What :func:`open_graph` accepts. A :class:`Graph` keeps the adjacency for the next call.
    method : {"modularity", "hollocou"}
        How to cluster.
    max_size : int, optional
        modularity: no cluster gets more vertices.
    max_volume : int, optional
        modularity: the sum of ``d(v) + 1`` over a cluster is at most this, but for vertices whose own exceeds it, which
        stay alone. SIGMA takes ``ceil(1.1 * (2 * m + n) / k)``. hollocou: a cluster whose sum of degrees exceeds this
        changes no more, so it does so by less than its largest degree; by default ``2 * m / min(32, sqrt(n))``.
    batch : int, optional
        modularity: vertices (hollocou: records) decided against one frozen state. 1 is the sequential rule, the default
        below 2**15 vertices (2**18 records); else 1,024 vertices (up to 65,536 records). It changes the result
        slightly; the number of threads never does.
    threads, memory_limit, progress
        As in :func:`fastpart.spring`.
    tmp_dir : path, optional
        Where the adjacency goes if it does not fit the memory limit; by default where the system has temporary files.

    Returns
    -------
    Clustering
        With ``assignment`` (int32, length n, read-only, not copied), ``sizes``, ``volumes``, ``caps``, ``modularity``.

    Raises
    ------
    ParameterError, TypeError
        A parameter that cannot be; the text says what is valid.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.
    EdgeFileChangedError
        The file changed during the run.

    Notes
    -----
    Sources: SIGMA, section 3.3, and CluStRE (Chhabra, Dorian Peretz, Schulz, SEA 2025), "light+"; Hollocou, Maudet,
    Bonald, Lelarge, "A Streaming Algorithm for Graph Clustering", 2017.

    Modularity gains are compared exactly; of equal ones, a vertex prefers to stay, then to be alone, then the
    cluster of its lowest neighbour. Loops are left out, parallel records are parallel edges. Vertices without an edge
    are alone. A graph with ``directedness="symmetric"`` lists each edge twice: "modularity" takes the number of
    neighbours for the degree, "hollocou" the number of records, which is twice as many.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
    >>> clusters = fp.cluster(two_triangles)
    >>> clusters
    <Clustering: modularity, 2 clusters of 6 vertices, largest 3, modularity 0.3571>
    >>> clusters.assignment, clusters.sizes, clusters.volumes
    (array([0, 0, 0, 1, 1, 1], dtype=int32), array([3, 3]), array([7, 7]))
    """
    parameters.choice("method", method, METHODS)
    if method == "hollocou" and max_size is not None:
        raise ParameterError('max_size: belongs to method="modularity"; hollocou bounds volumes only')
    given = {
        name: None if value is None else parameters.integer(name, value, 1, 2**63 - 1)
        for name, value in {"max_size": max_size, "max_volume": max_volume, "batch": batch}.items()
    }
    options = run_options(threads, memory_limit, progress, tmp_dir)
    opened = open_graph(graph, threads=threads, memory_limit=memory_limit, progress=progress)
    if method == "modularity":
        symmetric = opened.directedness == "symmetric"
        result = _core.cluster_modularity(
            opened._source,
            max_vertices=given["max_size"],
            max_volume=given["max_volume"],
            batch=given["batch"],
            symmetric=symmetric,
            options=options,
        )
    else:
        result = _core.cluster_hollocou(
            opened._source, max_volume=given["max_volume"], batch=given["batch"], options=options
        )
    opened.remember(result.graph.loops, result.graph.checksum)
    return Clustering(method, given, result)
