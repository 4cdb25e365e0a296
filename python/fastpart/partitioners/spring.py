"""SPRING."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core, parameters
from ..edges import open_edges
from ..errors import ParameterError
from ..parameters import Progress, run_options
from ..partition import VertexPartition
from .common import vertex_partition


def spring(
    edges: Any,
    k: int,
    *,
    balance: float = 1.05,
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    seed: int | None = 0,
    passes: int = 1,
    batch: int | None = None,
    strict: bool = True,
    degrees: npt.NDArray[np.uint32] | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> VertexPartition:
    """Partition the vertices with SPRING, from two passes over the edges.

    Clusters the stream (Hollocou's rule), merges small clusters into that of their representative's richest neighbour,
    and deals the clusters to the parts, largest first. Takes 32 bytes per vertex, whatever the number of edges.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts. For a path that needs more than the defaults, open it first.
    k : int
        Number of parts, 1 to 2**20. More parts than vertices leave parts empty, with a warning.
    balance : float
        ``beta`` of the paper, a ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
    balance_on : array of integers or bools, shape (n,), optional
        Weights of the vertices, each 0 to 2**32 - 1, or a mask: the parts share their sum W evenly, too. With the mask
        of the training vertices, each part gets its share of the training. Takes 4 bytes more per vertex, 8 unless the
        array is uint32. Where both caps leave no room for some vertex, which masks never meet, all vertices are dealt
        by weight alone, with a warning.
    balance_on_ratio : float
        A ratio >= 1: no part gets more weight than ``ceil(balance_on_ratio * W / k)``; or than
        ``ceil(W / k) + max(balance_on)``, if that is more and the weights are not all 0 or 1.
    seed : int, optional
        For uniformity with the other partitioners; SPRING has no random choice.
    passes : int
        Rounds of clustering over the stream; the paper makes one.
    batch : int, optional
        Records decided against one frozen state. 1 is the paper's sequential rule; by default 1 below 2**18 records,
        else 1,024 growing to 65,536. It changes the result slightly; the number of threads never does.
    strict : bool
        Split clusters that fit nowhere, so that the cap is met exactly. False is the paper's rule, which can exceed it;
        it has no meaning with ``balance_on`` and is refused.
    degrees : numpy.ndarray, optional
        uint32, length n: number of non-loop records at each vertex, if known; saves counting.
    threads : int, optional
        Number of threads; None or 0: as many as the process may use.
    memory_limit : int or str, optional
        Bytes, or a size such as "4G". Default: 80 % of the available memory (of the control group, if that is less).
    progress : callable, optional
        Called as ``progress(phase, done, total)`` about every 50 ms; an exception in it cancels the run.

    Returns
    -------
    VertexPartition
        With ``assignment`` (int32, length n, read-only, not copied), ``loads`` and ``cap``; with ``balance_on`` also
        ``weight_loads`` and ``weight_cap``.

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
    Source: SDT-GNN, section III-B, Algorithm 1. Ties, which the paper leaves open: the richest neighbour and the
    representative go to the lowest id, clusters to the one that appeared first, parts to the lowest. The order of the
    stream matters; a sorted file is fine.

    With ``balance_on``, clusters merge up to ``balance_on_ratio * W / k`` weight. They go to the part with the smallest
    larger relative load (vertices / n, weight / W) among those with room for both; a cluster that fits nowhere is split
    by the same rule. A vertex that fits nowhere takes the place of a lighter one, which goes where it fits.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    >>> fp.spring(two_triangles, k=2).assignment
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> fp.spring(two_triangles, k=2, balance_on=[True, True, True, True, False, False]).weight_loads
    array([2, 2])
    """
    given: dict[str, Any] = {
        "k": parameters.parts(k),
        "balance": parameters.ratio("balance", balance),
        "balance_on": parameters.weights("balance_on", balance_on),
        "balance_on_ratio": parameters.ratio("balance_on_ratio", balance_on_ratio),
        "seed": parameters.seed(seed),
        "passes": parameters.integer("passes", passes, 1, 2**31),
        "batch": None if batch is None else parameters.integer("batch", batch, 1, 2**63),
        "strict": parameters.flag("strict", strict),
    }
    if degrees is not None:
        degrees = _degrees(degrees)
    options = run_options(threads, memory_limit, progress)
    opened = open_edges(edges, threads=threads, memory_limit=memory_limit, progress=progress)
    in_core = {name: value for name, value in given.items() if name != "seed"}
    fields = _core.spring(opened._source, **in_core, degrees=degrees, options=options)
    return vertex_partition("spring", given, fields, opened)


def _degrees(degrees: Any) -> npt.NDArray[np.uint32]:
    if not isinstance(degrees, np.ndarray) or degrees.dtype.kind not in "iu" or degrees.ndim != 1:
        raise TypeError("degrees: expected a one-dimensional numpy array of integers")
    if degrees.size and (degrees.min() < 0 or degrees.max() > 2**32 - 1):
        raise ParameterError("degrees: values must fit in uint32")
    return np.ascontiguousarray(degrees, dtype=np.uint32)
