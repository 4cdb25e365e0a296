"""HDRF and PowerGraph's greedy rule: edge partitions from one look at each record."""

from __future__ import annotations

from typing import Any

from .. import _core, parameters
from ..edges import open_edges
from ..parameters import Progress, StrPath, run_options
from ..partition import EdgePartition
from .common import edge_partition


def hdrf(
    edges: Any,
    k: int,
    *,
    balance: float = 1.10,
    balance_weight: float = 1.0,
    seed: int | None = 0,
    out: StrPath | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> EdgePartition:
    """Partition the edge records with HDRF, "high degree replicated first".

    A record (u, v) goes to the part of the largest ``C_rep + balance_weight * C_bal``: C_rep adds
    ``2 - d(u) / (d(u) + d(v))`` if u is in the part already, and the same for v; C_bal is
    ``(max - load) / (1 + max - min)`` over the loads of all parts. Takes k bits (words of 64) and 4 bytes per vertex,
    and the result: 1 byte per record for k <= 255, 2 for k <= 32,767, else 4.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts.
    k : int
        Number of parts, 1 to 2**20.
    balance : float
        A ratio >= 1: no part gets more than ``ceil(balance * m / k)`` records. The score keeps loads nearly even by
        itself on most graphs.
    balance_weight : float
        ``lambda`` of the paper: weight of the balance in the score, >= 0.
    seed : int, optional
        For uniformity with the other partitioners; HDRF has no random choice.
    out : path of a .npy, optional
        Where the parts go, as a mapped file instead of memory.
    threads, memory_limit, progress
        As in :func:`spring`. The result does not depend on the threads; they count degrees, the stream is sequential.

    Returns
    -------
    EdgePartition
        With ``assignment`` (uint8, int16 or int32 by k, length m, read-only), ``loads`` and ``cap``.

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
    Source: Petroni, Querzoni, Daudjee, Kamali, Iacoboni, "HDRF: Stream-Based Partitioning for Power-Law Graphs", CIKM
    2015, section 3. Degrees are exact, from a pass before the stream, where the paper counts those seen so far. Equal
    scores go to the lowest part. Loops follow all other records, each to the least loaded part that holds its vertex.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [3, 4], [1, 2], [4, 5], [2, 0], [5, 3]])
    >>> fp.hdrf(two_triangles, k=2).assignment
    array([0, 1, 0, 1, 0, 1], dtype=uint8)
    """
    given: dict[str, Any] = {
        "k": parameters.parts(k),
        "balance": parameters.ratio("balance", balance),
        "balance_weight": parameters.number("balance_weight", balance_weight),
        "seed": parameters.seed(seed),
    }
    options = run_options(threads, memory_limit, progress)
    opened = open_edges(edges, threads=threads, memory_limit=memory_limit, progress=progress)
    core = {name: value for name, value in given.items() if name != "seed"}
    return edge_partition(
        "hdrf",
        given,
        opened,
        out,
        lambda file: _core.hdrf(opened._source, **core, out=file, options=options),
    )


def greedy(
    edges: Any,
    k: int,
    *,
    balance: float = 1.10,
    seed: int | None = 0,
    out: StrPath | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> EdgePartition:
    """Partition the edge records with PowerGraph's greedy rule.

    A record goes to the least loaded part among the first of these that hold one below the cap: the parts that both
    ends are in; those of the end with more records still to come; those of the other end; all parts. Takes what
    :func:`hdrf` takes.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts.
    k : int
        Number of parts, 1 to 2**20.
    balance : float
        A ratio >= 1: no part gets more than ``ceil(balance * m / k)`` records. The rule alone does not bound loads.
    seed : int, optional
        For uniformity with the other partitioners; the rule has no random choice.
    out : path of a .npy, optional
        Where the parts go, as a mapped file instead of memory.
    threads, memory_limit, progress
        As in :func:`hdrf`.

    Returns
    -------
    EdgePartition
        With ``assignment`` (uint8, int16 or int32 by k, length m, read-only), ``loads`` and ``cap``.

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
    Source: Gonzalez, Low, Gu, Bickson, Guestrin, "PowerGraph: Distributed Graph-Parallel Computation on Natural
    Graphs", OSDI 2012, section 5.2.1. Ends with equally many records to come: u. Equal loads go to the lowest part.
    Loops follow all other records, each to the least loaded part that holds its vertex.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [3, 4], [1, 2], [4, 5], [2, 0], [5, 3]])
    >>> fp.greedy(two_triangles, k=2).assignment
    array([0, 1, 0, 1, 0, 1], dtype=uint8)
    """
    given: dict[str, Any] = {
        "k": parameters.parts(k),
        "balance": parameters.ratio("balance", balance),
        "seed": parameters.seed(seed),
    }
    options = run_options(threads, memory_limit, progress)
    opened = open_edges(edges, threads=threads, memory_limit=memory_limit, progress=progress)
    return edge_partition(
        "greedy",
        given,
        opened,
        out,
        lambda file: _core.greedy(
            opened._source, k=given["k"], balance=given["balance"], out=file, options=options
        ),
    )
