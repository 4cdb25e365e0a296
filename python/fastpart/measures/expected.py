"""The expected cut of GREM for a chunk size, from the analysis in its paper."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..core.options import Options, with_options
from ..core.parameters import StrPath
from ..errors import ParameterError
from ..graphs.opening import open_graph
from ..partitions.partition import VertexPartition, partition_given

_BLOCK = 1 << 16


@with_options
def expected_cut(
    graph: Any,
    partition: VertexPartition | StrPath | npt.ArrayLike,
    chunk: float,
    *,
    revise: bool = True,
    **options: Unpack[Options],
) -> float:
    """Return the expected cut ratio of :func:`grem` with k = 2 for a chunk size.

    The model: every vertex chooses its side by its neighbours in the chunk. All other vertices are placed as in
    ``partition``. With ``revise`` a vertex sees two chunks.

    Parameters
    ----------
    graph : path, array or Graph
        The graph, as :func:`open_graph` accepts it.
    partition : VertexPartition, path or array, shape (n,)
        A good partition into two parts, such as ``grem(graph, 2, chunk=1.0)``. Its parts are 0 and 1.
    chunk : float
        The share of the records in a chunk, above 0 and at most 1.
    revise : bool
        Revise decisions.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    float
        Expected number of cut records / number of records that are no loops.

    Raises
    ------
    ParameterError
        The partition does not have one part, 0 or 1, per vertex, or the chunk is not a share.

    Notes
    -----
    Source: Armada (Waleffe et al.), section 4.2, equation 1: ``E[C] = sum (k - k0) (1 - p) + k0 p`` over the vertices.
    k is the degree of a vertex, k0 its neighbours on the side that has more of them. ``p = Pr(X < x k / 2)``, where X
    is hypergeometric with x k draws. A fractional number of draws is interpolated between the two whole numbers around
    it. The sum counts a cut record at both ends, so it is halved. With ``revise``, x is twice the chunk, at most 1. As
    in the paper, a tie counts as a right decision, even without any draw. So the cut of small chunks is underestimated.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> square = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    >>> fp.algorithms.expected_cut(square, [0, 0, 1, 1], chunk=1.0)
    0.5
    """
    share = parameters.share("chunk", chunk)
    opened = open_graph(graph, **options)
    side = np.asarray(partition_given(partition, opened, of="vertices").assignment)
    if side.shape != (opened.num_vertices,) or (side.size and not 0 <= side.min() <= side.max() <= 1):
        raise ParameterError(
            f"partition: expected one part, 0 or 1, for each of the {opened.num_vertices} vertices"
        )
    if not side.size:
        return 0.0
    degree = opened.degrees(**options).astype(np.int64)
    ones = np.zeros(len(side), np.int64)
    for first in range(0, opened.num_edges, _BLOCK):
        u, v = opened._source.block(first, min(first + _BLOCK, opened.num_edges)).T
        u, v = u[u != v], v[u != v]
        np.add.at(ones, u, side[v])
        np.add.at(ones, v, side[u])
    pairs, counts = np.unique(np.stack([degree, np.maximum(ones, degree - ones)]), axis=1, return_counts=True)
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, pairs.max(initial=0) + 1)))])
    sampled = min(1.0, 2 * share if revise else share)
    expected = 0.0
    for (k, k0), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        wrong = _minority(k, k0, sampled * k, logs)
        expected += count * ((k - k0) * (1 - wrong) + k0 * wrong)
    return expected / max(1, int(degree.sum()))


def _minority(k: int, k0: int, draws: float, logs: npt.NDArray[np.float64]) -> float:
    """Return the probability that fewer than half of the draws are among the k0 of k."""
    below = int(draws)
    part = draws - below
    probability = (1 - part) * _below_half(k, k0, below, logs)
    return probability + part * _below_half(k, k0, below + 1, logs) if part > 0 else probability


def _below_half(k: int, k0: int, draws: int, logs: npt.NDArray[np.float64]) -> float:
    x = np.arange(max(0, draws - (k - k0)), min(k0, (draws - 1) // 2) + 1)

    def choose(n: int, some: Any) -> Any:
        return logs[n] - logs[some] - logs[n - some]

    logarithm = choose(k0, x) + choose(k - k0, draws - x) - choose(k, draws)
    return float(np.exp(logarithm).sum())
