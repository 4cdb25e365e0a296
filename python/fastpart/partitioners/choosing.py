"""Partition without choosing an algorithm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Unpack

from ..errors import MemoryBudgetError
from ..options import Options, with_options
from ..parameters import StrPath
from ..partitions import VertexPartition
from .builtin import multilevel


@with_options
def partition(
    graph: Any,
    k: int,
    *,
    balance: float = 1.03,
    machines: Sequence[int] | None = None,
    effort: Literal["default", "quick", "best"] = "default",
    time_limit: float | None = None,
    checkpoints: StrPath | None = None,
    seed: int | None = 0,
    **options: Unpack[Options],
) -> VertexPartition:
    """Partition the vertices into parts of equal size with few cut edges.

    This calls :func:`fastpart.multilevel`, which has the lowest cut of all algorithms here. Where the graph does not
    fit in memory, its largest levels lie in temporary files. ``path`` and ``sample`` in ``parameters`` of the result
    say which, and :func:`fastpart.multilevel` with these gives the same partition on any machine. Weights of
    records multiply the cut.

    Parameters
    ----------
    graph : path, array or Graph
        What :func:`open_graph` accepts.
    k : int
        Number of parts, 1 to 2**20. More parts than there are vertices leave parts empty, with a warning.
    balance : float
        A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
    machines : list of int, optional
        How many parts each machine has, as ``[8, 8]``. Their sum is k. Few edges between machines then come first, and
        few between the parts of a machine second.
    effort : {"default", "quick", "best"}
        "quick" takes the least time. "best" improves the partition in rounds as long as they gain.
    time_limit : float, optional
        Seconds after which no further round begins. Only with ``effort="best"``.
    checkpoints : path, optional
        A folder for what has been found so far, if levels lie in temporary files. A run that was killed goes on from
        there when it is called again, and gives the same partition. See :func:`fastpart.multilevel`.
    seed : int, optional
        Seed, 0 to 2**64 - 1. None is 0. The same seed gives the same partition for any number of threads.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    VertexPartition
        ``assignment`` (int32, shape (n,), read-only), ``loads`` and ``cap``. ``algorithm`` is "multilevel".

    Raises
    ------
    MemoryBudgetError
        The graph and the working memory exceed the budget. The text names the calls to make instead.
    ParameterError, TypeError
        An invalid parameter. The text says what is valid.

    See Also
    --------
    multilevel : The same with bounds on volume and weights.
    grem : Graphs larger than memory.
    spring : 32 bytes per vertex, for any number of edges.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3]])
    >>> p = fp.partition(two_triangles, 2)
    >>> p.cut_ratio
    0.14285714285714285
    >>> p.algorithm
    'multilevel'
    """
    try:
        return multilevel(
            graph,
            k,
            balance=balance,
            machines=machines,
            effort=effort,
            time_limit=time_limit,
            checkpoints=checkpoints,
            seed=seed,
            **options,
        )
    except MemoryBudgetError as error:
        raise MemoryBudgetError(
            f"{error}. Or call fastpart.grem(graph, {k}), which works in chunks, or fastpart.spring(graph, {k}), which "
            "needs 32 bytes per vertex"
        ) from None
