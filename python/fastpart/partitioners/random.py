"""Random parts: what any partitioner has to beat."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from .. import _core, parameters
from ..edges import open_edges
from ..errors import ParameterError
from ..parameters import Progress, StrPath, run_options
from ..partition import EdgePartition, VertexPartition
from .common import edge_partition, vertex_partition


def random(
    edges: Any,
    k: int,
    *,
    mode: str = "vertex",
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    seed: int | None = 0,
    out: StrPath | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> VertexPartition | EdgePartition:
    """Deal the vertices, or the edge records, to the parts in random order.

    Takes 4 bytes per vertex (16 with ``balance_on``), or the result alone: 1 byte per record for k <= 255, 2 for
    k <= 32,767, else 4.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts.
    k : int
        Number of parts, 1 to 2**20.
    mode : {"vertex", "edge"}
        What gets parts. The sizes of the parts differ by at most 1.
    balance_on, balance_on_ratio
        A second cap for vertices, as in :func:`spring`: each vertex, in random order, goes to the part with the
        smallest larger relative load among those with room.
    seed : int, optional
        Of the order; None is 0.
    out : path of a .npy, optional
        Where the parts of the records go, as a mapped file instead of memory.
    threads, memory_limit, progress
        As in :func:`spring`.

    Returns
    -------
    VertexPartition or EdgePartition
        By ``mode``.

    Raises
    ------
    ParameterError, TypeError
        A parameter that cannot be; the text says what is valid.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> ring = np.array([[v, (v + 1) % 9] for v in range(9)])
    >>> fp.random(ring, k=3).loads
    array([3, 3, 3])
    >>> fp.random(ring, k=3, mode="edge").assignment
    array([2, 0, 2, 1, 0, 2, 0, 1, 1], dtype=uint8)
    """
    parameters.choice("mode", mode, ("vertex", "edge"))
    options = run_options(threads, memory_limit, progress)
    given: dict[str, Any] = {"k": parameters.parts(k), "mode": mode, "seed": parameters.seed(seed)}
    core: dict[str, Any] = {"k": given["k"], "seed": given["seed"], "options": options}
    weights = parameters.weights("balance_on", balance_on)
    ratio = parameters.ratio("balance_on_ratio", balance_on_ratio)
    opened = open_edges(edges, threads=threads, memory_limit=memory_limit, progress=progress)
    if mode == "edge":
        if weights is not None:
            raise ParameterError('balance_on: weights are of vertices; it belongs to mode="vertex"')
        return edge_partition(
            "random", given, opened, out, lambda file: _core.random_edges(opened._source, **core, out=file)
        )
    if out is not None:
        raise ParameterError('out: it belongs to mode="edge"; save a vertex partition with .save(...)')
    given |= {"balance_on": weights, "balance_on_ratio": ratio}
    fields = _core.random_vertices(opened._source, **core, balance_on=weights, balance_on_ratio=ratio)
    return vertex_partition("random", given, fields, opened)


def hash(
    edges: Any,
    k: int,
    *,
    seed: int | None = 0,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> VertexPartition:
    """Give vertex v the part ``splitmix64(v ^ seed) % k``.

    The part of a vertex can be told without the partition. There is no cap: sizes vary as those of random draws do.
    Takes 4 bytes per vertex.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts.
    k : int
        Number of parts, 1 to 2**20.
    seed : int, optional
        None is 0.
    threads, memory_limit, progress
        As in :func:`spring`.

    Returns
    -------
    VertexPartition
        Its ``cap`` is None.

    Raises
    ------
    ParameterError, TypeError
        A parameter that cannot be; the text says what is valid.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.

    Notes
    -----
    Source of the hash: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", OOPSLA 2014.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> ring = np.array([[v, (v + 1) % 9] for v in range(9)])
    >>> fp.hash(ring, k=3).assignment
    array([1, 2, 1, 0, 1, 2, 2, 0, 1], dtype=int32)
    """
    given: dict[str, Any] = {"k": parameters.parts(k), "seed": parameters.seed(seed)}
    options = run_options(threads, memory_limit, progress)
    opened = open_edges(edges, threads=threads, memory_limit=memory_limit, progress=progress)
    fields = _core.hash_vertices(opened._source, k=given["k"], seed=given["seed"], options=options)
    return vertex_partition("hash", given, fields, opened)
