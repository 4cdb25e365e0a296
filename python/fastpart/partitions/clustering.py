"""Clustering of vertices. The number of clusters follows from the graph."""

from __future__ import annotations

from typing import Any, Literal, Unpack, get_args

from .. import _core
from ..core import parameters
from ..core.options import Options, run_options, with_options
from ..errors import ParameterError, arg
from ..graphs.graph import warn_of_unread_weights
from ..graphs.opening import open_graph
from .results import Clustering

Method = Literal["modularity", "hollocou"]
METHODS: tuple[Method, ...] = get_args(Method)


@with_options
def cluster(
    graph: Any,
    method: Method = "modularity",
    *,
    max_size: int | None = None,
    max_volume: int | None = None,
    batch: int | None = None,
    **options: Unpack[Options],
) -> Clustering:
    """Group the vertices into clusters with many edges inside and few between, as partitioners begin with.

    These clusters are many and small. Leiden and Louvain reach a higher modularity with fewer clusters: for
    communities use leidenalg or networkx.

    ``"modularity"`` streams the vertices with their neighbours. Each vertex joins the neighbouring cluster that gains
    the most modularity, or founds one. A second pass, and rounds over vertices whose neighbours moved, improve the
    result. SIGMA begins with it. It needs the adjacency (8 bytes per edge, in a mapped file when memory is short) and
    17 bytes per vertex. ``"hollocou"`` reads each edge once, in stream order, and needs 32 bytes per vertex. SPRING and
    2PS begin with it. On many graphs it reaches half the modularity.

    Parameters
    ----------
    graph : path, array or Graph
        What :func:`open_graph` accepts. A :class:`Graph` keeps the adjacency for the next call.
    method : {"modularity", "hollocou"}
        How to cluster.
    max_size : int, optional
        modularity: no cluster gets more vertices.
    max_volume : int, optional
        modularity: the sum of ``d(v) + 1`` over a cluster is at most this. A vertex that exceeds it alone stays alone.
        SIGMA takes ``ceil(1.1 * (2 * m + n) / k)``. hollocou: a cluster stops changing when its sum of degrees exceeds
        this, so it exceeds it by less than its largest degree. Default: ``2 * m / min(32, sqrt(n))``.
    batch : int, optional
        modularity: vertices (hollocou: records) that are decided against one frozen state. 1 is the sequential rule and
        the default below 2**15 vertices (2**18 records). Above, the default is 1,024 vertices (up to 65,536 records).
        The size of a batch changes the result slightly. The number of threads never does.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    Clustering
        With ``assignment`` (int32, length n, read-only, not copied), ``sizes``, ``volumes``, ``caps``, ``modularity``.

    Raises
    ------
    ParameterError, TypeError
        An invalid parameter. The text says what is valid.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.
    EdgeFileChangedError
        The file changed during the run.

    Notes
    -----
    Sources: SIGMA, section 3.3, and CluStRE (Chhabra, Dorian Peretz, Schulz, SEA 2025), "light+". Hollocou, Maudet,
    Bonald, Lelarge, "A Streaming Algorithm for Graph Clustering", 2017.

    Modularity gains are compared exactly. On a tie, a vertex prefers to stay, then to be alone, then the cluster of its
    lowest neighbour. Loops are ignored. Weights of records are not read. Parallel records are parallel edges. Vertices
    without an edge are alone. With ``directedness="symmetric"`` the graph lists each edge twice. The degree of a vertex
    is then its number of neighbours for "modularity", and its number of records, which is twice as many, for
    "hollocou".

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
        raise ParameterError(f'max_size: needs {arg("method", "modularity")}. "hollocou" bounds volumes only')
    given = {
        name: None if value is None else parameters.integer(name, value, 1, 2**63 - 1)
        for name, value in {"max_size": max_size, "max_volume": max_volume, "batch": batch}.items()
    }
    run = run_options(**options)
    opened = open_graph(graph, **options)
    warn_of_unread_weights(opened, "cluster")
    if method == "modularity":
        symmetric = opened.directedness == "symmetric"
        result = _core.cluster_modularity(
            opened._source,
            max_vertices=given["max_size"],
            max_volume=given["max_volume"],
            batch=given["batch"],
            symmetric=symmetric,
            options=run,
        )
    else:
        result = _core.cluster_hollocou(
            opened._source, max_volume=given["max_volume"], batch=given["batch"], options=run
        )
    opened._remember(result.graph.loops, result.graph.checksum)
    return Clustering(method, given, result, opened)
