"""The one call for those who need no algorithm by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from ..errors import MemoryBudgetError
from ..options import Options, with_options
from ..partitions import VertexPartition
from .builtin import multilevel


@with_options
def partition(
    graph: Any,
    k: int,
    *,
    balance: float = 1.03,
    machines: Sequence[int] | None = None,
    seed: int | None = 0,
    **options: Unpack[Options],
) -> VertexPartition:
    """Partition the vertices into parts of equal size with few cut edges.

    Takes :func:`fastpart.multilevel`, which cuts least of all algorithms here and needs the graph in memory. The
    choice never depends on the memory that happens to be free.

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
    seed : int, optional
        0 to 2**64 - 1; None is 0. The same seed gives the same partition for any number of threads.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    VertexPartition
        ``assignment`` (int32, shape (n,), read-only), ``loads`` and ``cap``. ``algorithm`` names what was taken.

    Raises
    ------
    MemoryBudgetError
        The graph and the working memory exceed the budget. The text names the calls to make instead.
    ParameterError, TypeError
        A parameter that cannot be. The text says what is valid.

    See Also
    --------
    multilevel : The same with bounds on volume and weights.
    grem : Graphs larger than memory.
    spring : 32 bytes per vertex, whatever the number of edges.

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
        return multilevel(graph, k, balance=balance, machines=machines, seed=seed, **options)
    except MemoryBudgetError as error:
        raise MemoryBudgetError(
            f"{error}; or call fastpart.grem(graph, {k}), which works in chunks, or fastpart.spring(graph, {k}), which "
            "takes 32 bytes per vertex"
        ) from None
