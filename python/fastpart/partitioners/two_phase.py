"""Two-phase streaming: 2PS-L and 2PS-HDRF."""

from __future__ import annotations

from typing import Any

from .. import _core, parameters
from ..edges import open_edges
from ..parameters import Progress, StrPath, run_options
from ..partition import EdgePartition
from .common import edge_partition


def two_phase(
    edges: Any,
    k: int,
    *,
    scoring: str = "linear",
    balance: float = 1.05,
    seed: int | None = 0,
    batch: int | None = None,
    out: StrPath | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> EdgePartition:
    """Partition the edge records after clusters of their ends (2PS-L, 2PS-HDRF).

    Clusters the vertices in one pass over the stream, deals the clusters to the parts, gives the records within a part
    to it, and scores the others. Takes 40 bytes per vertex, or 20 and ``8 * ceil(k / 64)``, if that is more; up to
    22 MB of buffers; and the result.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts. The order of the records matters; a sorted file is fine.
    k : int
        Number of parts, 1 to 2**20.
    scoring : {"linear", "hdrf"}
        Whether a record that no cluster decides chooses between the parts of its ends' clusters (2PS-L, whose time does
        not grow with k), or among all (2PS-HDRF, which makes fewer replicas).
    balance : float
        A ratio >= 1: no part gets more than ``ceil(balance * m / k)`` records.
    seed : int, optional
        Of the hash that places records whose two parts are full; None is 0.
    batch : int, optional
        Records clustered against one frozen state. 1 is the rule as published; by default 1 below 2**18 records, else
        1,024 growing to 65,536. It changes the result slightly; the number of threads never does.
    out : path of a .npy, optional
        Where the parts of the records go, as a mapped file instead of memory.
    threads, memory_limit, progress
        As in :func:`spring`.

    Returns
    -------
    EdgePartition
        With ``assignment`` (shape (m,)), ``loads`` and ``cap``.

    Raises
    ------
    ParameterError, TypeError
        A parameter that cannot be; the text says what is valid.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.
    EdgeFileChangedError
        The file changed during the run.
    KeyboardInterrupt
        Within a fraction of a second of Ctrl-C.

    Notes
    -----
    Source: Mayer, Orujzade, Jacobsen, "Out-of-Core Edge Partitioning at Linear Run-Time", ICDE 2022. Degrees are exact,
    clusters have a volume of at most ``vol(V) / k`` unless a single vertex has more. With ``g_u = 2 - d(u) / (d(u) +
    d(v))`` where u is in the part already, else 0, and ``s_u = vol(C_u) / (vol(C_u) + vol(C_v))`` in the part of u's
    cluster, else 0:

    - "linear" takes the larger ``g_u + g_v + s_u + s_v`` of two parts, and the other if one is full (the published
      program hashes then, at the price of replicas); with both full, ``splitmix64(w ^ seed) % k`` of the end w of
      higher degree (of equal ones, the lower id); if that is full, too, the part with the fewest records.
    - "hdrf" takes the largest ``g_u + g_v + (Lmax - L) / Lmax`` of all parts below the cap.

    Ties go to the lowest part. Records within a part that is full are placed with the others. A loop goes to the
    least-loaded part that holds its vertex, after all other records.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
    >>> fp.two_phase(two_triangles, k=2, balance=1.1).assignment
    array([0, 0, 0, 1, 1, 1, 0], dtype=uint8)
    """
    given: dict[str, Any] = {
        "k": parameters.parts(k),
        "scoring": parameters.choice("scoring", scoring, ("linear", "hdrf")),
        "balance": parameters.ratio("balance", balance),
        "seed": parameters.seed(seed),
        "batch": None if batch is None else parameters.integer("batch", batch, 1, 2**63),
    }
    options = run_options(threads, memory_limit, progress)
    opened = open_edges(edges, threads=threads, memory_limit=memory_limit, progress=progress)

    def partition(file: Any) -> dict[str, Any]:
        return _core.two_phase(opened._source, **given, out=file, options=options)

    return edge_partition("two_phase", given, opened, out, partition)
