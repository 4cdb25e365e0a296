"""Multilevel partitions of graphs that fit into memory."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from .. import _core, parameters
from ..edges import open_edges
from ..errors import ParameterError
from ..parameters import Progress, StrPath, run_options
from ..partition import VertexPartition
from .common import vertex_partition


def multilevel(
    edges: Any,
    k: int,
    *,
    balance: float = 1.03,
    volume_balance: float | None = None,
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    on_infeasible: str = "warn",
    seed: int | None = 0,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    tmp_dir: StrPath | None = None,
    progress: Progress | None = None,
) -> VertexPartition:
    """Partition the vertices with a multilevel scheme: few cut edges, for graphs that fit into memory.

    Contracts clusters of vertices until the graph is small, partitions that, and improves the parts on the way back.
    Takes, beside the adjacency (8 bytes per edge), 32 bytes per edge (80 with a second bound, 64 for more than 64
    parts), 96 per vertex and 4 per vertex and part, for at most 64 parts; for larger graphs there are :func:`spring`
    and the other streaming partitioners.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts. Of ``kind="symmetric"``, both directions of every edge must be there.
    k : int
        Number of parts, 1 to 2**20. More parts than vertices leave parts empty, with a warning.
    balance : float
        A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
    volume_balance : float, optional
        A ratio >= 1: no part gets a volume, the sum of its degrees + 1, above ``ceil(volume_balance * (2 m + n) / k)``,
        where m counts edges without loops. By default volumes are not bounded.
    balance_on, balance_on_ratio
        A second cap, as in :func:`spring`; not together with ``volume_balance``.
    on_infeasible : {"warn", "error"}
        What happens where the cap on volume cannot be kept, or all vertices had to be dealt whatever their edges: a
        :class:`CapacityWarning`, with a cap that is raised as little as was found, or a :class:`CapacityError`.
    seed : int, optional
        0 to 2**64 - 1; None is 0.
    threads, memory_limit, tmp_dir, progress
        As in :func:`spring`.

    Returns
    -------
    VertexPartition
        With ``assignment`` (int32, length n), ``loads`` and ``cap``; with ``volume_balance`` also ``volume_loads`` and
        ``volume_cap``, with ``balance_on`` ``weight_loads`` and ``weight_cap``.

    Raises
    ------
    ParameterError, TypeError
        A parameter that cannot be; the text says what is valid.
    CapacityError
        2**32 or more entries of the adjacency, or see ``on_infeasible``.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.

    Notes
    -----
    Sources: Karypis and Kumar, "Multilevel k-way Partitioning Scheme for Irregular Graphs", 1998; Meyerhenke, Sanders
    and Schulz, "Partitioning Complex Networks via Size-Constrained Clustering", SEA 2014. The result is the same for
    any number of threads.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    >>> fp.evaluate(two_triangles, fp.multilevel(two_triangles, k=2)).cut_matrix
    array([[3, 1],
           [1, 3]])
    """
    given: dict[str, Any] = {
        "k": parameters.parts(k),
        "balance": parameters.ratio("balance", balance),
        "volume_balance": None
        if volume_balance is None
        else parameters.ratio("volume_balance", volume_balance),
        "balance_on": parameters.weights("balance_on", balance_on),
        "balance_on_ratio": parameters.ratio("balance_on_ratio", balance_on_ratio),
        "seed": parameters.seed(seed),
    }
    parameters.choice("on_infeasible", on_infeasible, ("warn", "error"))
    if volume_balance is not None and balance_on is not None:
        raise ParameterError("volume_balance: not together with balance_on; there is one second cap")
    options = run_options(threads, memory_limit, progress, tmp_dir)
    opened = open_edges(edges, threads=threads, memory_limit=memory_limit, progress=progress)
    symmetric = opened.kind == "symmetric"
    fields = _core.multilevel(opened._source, symmetric=symmetric, **given, options=options)
    return vertex_partition("multilevel", given, fields, opened, on_infeasible)
