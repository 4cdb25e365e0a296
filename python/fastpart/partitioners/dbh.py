"""Degree-based hashing."""

from __future__ import annotations

from typing import Any

from .. import _core, parameters
from ..edges import open_edges
from ..parameters import Progress, StrPath, run_options
from ..partition import EdgePartition
from .common import edge_partition


def dbh(
    edges: Any,
    k: int,
    *,
    seed: int | None = 0,
    out: StrPath | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> EdgePartition:
    """Partition the edge records by the hash of their end of lower degree (DBH).

    The fastest edge partitioner that looks at the graph: hubs are replicated, the many vertices of low degree are not.
    Takes 4 bytes per vertex and thread (up to 6 threads count), and the result.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts.
    k : int
        Number of parts, 1 to 2**20.
    seed : int, optional
        Of the hash; None is 0.
    out : path of a .npy, optional
        Where the parts of the records go, as a mapped file instead of memory.
    threads, memory_limit, progress
        As in :func:`spring`.

    Returns
    -------
    EdgePartition
        Its ``cap`` is None: the published rule has no bound. Loads are about even unless a vertex of low degree has a
        large share of the records, as in a clique, or there are few vertices per part.

    Raises
    ------
    ParameterError, TypeError
        A parameter that cannot be; the text says what is valid.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.

    Notes
    -----
    Source: Xie, Yan, Li, Zhang, "Distributed Power-law Graph Computing: Theoretical and Empirical Analysis", NIPS 2014,
    section 3. The part is ``splitmix64(v ^ seed) % k``, which :func:`hash` gives the end v as well; of two ends of the
    same degree, which the paper leaves open, v is the one with the lower id. A loop goes to the least-loaded part that
    holds its vertex, after all other records.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> star = np.array([[0, v] for v in range(1, 9)])
    >>> part = fp.dbh(star, k=3)
    >>> part.assignment
    array([2, 1, 0, 1, 2, 2, 0, 1], dtype=uint8)
    >>> bool((part.assignment == fp.hash(star, k=3).assignment[1:]).all())
    True
    """
    given = {"k": parameters.parts(k), "seed": parameters.seed(seed)}
    options = run_options(threads, memory_limit, progress)
    opened = open_edges(edges, threads=threads, memory_limit=memory_limit, progress=progress)
    return edge_partition(
        "dbh", given, opened, out, lambda file: _core.dbh(opened._source, **given, out=file, options=options)
    )
