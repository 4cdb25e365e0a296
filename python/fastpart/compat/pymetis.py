"""``part_graph`` of pymetis, made by :func:`fastpart.multilevel`. It does not need pymetis."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..core.calls import called_well
from ..errors import ParameterError
from ..graphs.opening import open_graph
from ..partitions.partitioners.builtin import multilevel

__all__ = ["GraphPartition", "part_graph"]


def __dir__() -> list[str]:
    return __all__


Ids: TypeAlias = npt.NDArray[np.int64]
BALANCE = 1.03
"""What METIS allows a part of its k-way scheme by default."""
NOT_EMPTY = 1e-9
"""A lower bound that asks for one vertex."""


class GraphPartition(NamedTuple):
    """What :func:`part_graph` returns."""

    edge_cuts: int
    """Edges between parts, or the sum of their weights."""
    vertex_part: Sequence[int]
    """The part of each vertex."""


@called_well
def part_graph(
    nparts: int,
    adjacency: Sequence[Any] | Mapping[int, Any] | Any | None = None,
    xadj: npt.ArrayLike | None = None,
    adjncy: npt.ArrayLike | None = None,
    *,
    vweights: npt.ArrayLike | None = None,
    eweights: npt.ArrayLike | None = None,
    tpwgts: Sequence[float] | None = None,
    recursive: bool | None = None,
    contiguous: bool | None = None,
    options: Any = None,
    warn_on_copies: bool = False,
) -> GraphPartition:
    """Partition a graph as ``pymetis.part_graph`` does, with fewer cut edges in most cases.

    Parameters
    ----------
    nparts : int
        Number of parts, 1 to 2**20.
    adjacency : sequence of sequences of int, mapping of them, or CSRAdjacency of pymetis, optional
        The neighbours of each vertex. Each edge is there in both directions. A graph of networkx whose vertices are
        0 to n-1 is such a mapping.
    xadj, adjncy : array of integers, optional
        The same as two arrays, in the place of ``adjacency``: v has the neighbours ``adjncy[xadj[v] : xadj[v + 1]]``.
    vweights : array of integers, shape (n,), optional
        Weights of the vertices, which parts share evenly. They take the place of the number of vertices.
    eweights : array of integers, shape of ``adjncy``, optional
        Weights of the edges, above 0. Both directions of an edge have the same.
    tpwgts : sequence of float, optional
        The share of each part. Default: all are equal.
    recursive : bool, optional
        Accepted and ignored: there is one scheme.
    contiguous : bool, optional
        Move fragments of parts to the parts around them, as far as the bounds allow. A warning says how many stay.
        METIS promises contiguous parts. This does not.
    options : Options of pymetis, optional
        Read are ``seed``, ``ufactor`` (default 30: parts of up to 1.03 times their share) and ``contig``. Others steer
        the algorithm of METIS, and are ignored.
    warn_on_copies : bool
        Accepted and ignored.

    Returns
    -------
    GraphPartition
        ``(edge_cuts, vertex_part)``. The parts are an ``array.array``, as those of pymetis. No part is empty if there
        are as many vertices as parts.

    Raises
    ------
    ParameterError
        ``adjacency`` is not symmetric or names vertices that are not there, or a parameter is out of its range.

    See Also
    --------
    fastpart.multilevel : The partitioner, for graphs in files and with more bounds.

    Examples
    --------
    >>> from fastpart.compat import pymetis
    >>> two_triangles = [[1, 2, 3], [0, 2], [0, 1], [4, 5, 0], [3, 5], [3, 4]]
    >>> cut, membership = pymetis.part_graph(2, adjacency=two_triangles)
    >>> cut, membership.count(0)
    (1, 3)
    """
    starts, targets = _adjacency(adjacency, xadj, adjncy)
    n = len(starts) - 1
    sources = np.repeat(np.arange(n), np.diff(starts))
    _check_symmetric(sources, targets, n)
    once = sources < targets
    records = np.stack([sources[once], targets[once]], axis=1).astype(np.uint32)
    weights = None if eweights is None else _like("eweights", eweights, targets)[once]
    if weights is not None and len(weights) and weights.min() < 1:
        raise ParameterError("eweights: weights are whole numbers above 0")
    graph = open_graph(records, num_vertices=n, weights=weights)
    ufactor, seed = _option(options, "ufactor"), _option(options, "seed")
    balance = BALANCE if ufactor is None else 1 + ufactor / 1000
    bounds: dict[str, Any] = {"balance": balance}
    if vweights is not None:
        heavy = _like("vweights", vweights, starts[1:])
        # A part may then have any number of vertices.
        bounds = {"balance": float(nparts), "balance_on": heavy, "balance_on_ratio": balance}
    partition = multilevel(
        graph,
        nparts,
        sizes=tpwgts,
        min_balance=NOT_EMPTY if nparts <= n else None,
        connected=bool(contiguous) or bool(_option(options, "contig")),
        seed=seed or 0,
        **bounds,
    )
    part = np.asarray(partition.assignment)
    cut = part[records[:, 0]] != part[records[:, 1]]
    edge_cuts = int(cut.sum() if weights is None else weights[cut].sum())
    return GraphPartition(edge_cuts, array("q", part.astype(np.int64).tobytes()))


def _adjacency(adjacency: Any, xadj: Any, adjncy: Any) -> tuple[Ids, Ids]:
    """Return where the neighbours of each vertex begin, and the neighbours."""
    if adjacency is None:
        if xadj is None or adjncy is None:
            raise TypeError("adjacency: pass the neighbours of each vertex, or both xadj and adjncy")
    elif xadj is not None or adjncy is not None:
        raise TypeError("xadj: pass either adjacency, or xadj and adjncy")
    elif hasattr(adjacency, "adj_starts"):  # a CSRAdjacency
        xadj, adjncy = adjacency.adj_starts, adjacency.adjacent
    else:
        lists = [list(map(int, adjacency[v])) for v in range(len(adjacency))]
        xadj = np.cumsum([0, *map(len, lists)])
        adjncy = [target for each in lists for target in each]
    starts, targets = _integers("xadj", xadj), _integers("adjncy", adjncy)
    if not len(starts) or starts[0] != 0 or starts[-1] != len(targets) or (np.diff(starts) < 0).any():
        raise ParameterError(f"xadj: must rise from 0 to the {len(targets)} entries of adjncy")
    if len(targets) and not 0 <= targets.min() <= targets.max() < len(starts) - 1:
        raise ParameterError(f"adjacency: names vertices beyond 0 to {len(starts) - 2}")
    return starts, targets


def _check_symmetric(sources: Ids, targets: Ids, n: int) -> None:
    up, down = sources < targets, sources > targets
    forth, back = sources[up] * n + targets[up], targets[down] * n + sources[down]
    if not np.array_equal(np.sort(forth), np.sort(back)):
        raise ParameterError(
            "adjacency: some edges are there in one direction only. List each edge at both of its ends"
        )


def _integers(name: str, given: Any) -> Ids:
    numbers = np.asarray(given)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise TypeError(f"{name}: expected one row of integers, got {numbers.dtype} of shape {numbers.shape}")
    return numbers.astype(np.int64, copy=False)


def _like(name: str, given: Any, other: Ids) -> Ids:
    numbers = _integers(name, given)
    if len(numbers) != len(other):
        raise ParameterError(f"{name}: expected {len(other)} numbers, got {len(numbers)}")
    return numbers


def _option(options: Any, name: str) -> int | None:
    """Return an option of pymetis. Those that were not set are -1."""
    value = getattr(options, name, -1)
    return None if value == -1 else parameters.integer(f"options.{name}", value, 0, 2**31 - 1)
