"""Vertices that stream by with their neighbours: LDG and Fennel, once or again and again."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from .. import _core, parameters
from ..edges import Edges, open_edges
from ..parameters import Progress, StrPath, run_options
from ..partition import VertexPartition
from .common import Fields, vertex_partition


def ldg(
    edges: Any,
    k: int,
    *,
    balance: float = 1.03,
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    batch: int | None = None,
    seed: int | None = 0,
    tmp_dir: StrPath | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> VertexPartition:
    """Partition the vertices with linear deterministic greedy (LDG).

    Vertices stream by in the order of their ids, each with all its neighbours, and go to the part with the largest
    ``e(v, p) * (1 - |p| / C)``: e(v, p) of their neighbours are there, and C is the cap on vertices. Takes 4 bytes per
    vertex beside the adjacency.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts. An open graph keeps its adjacency for the next call.
    k : int
        Number of parts, 1 to 2**20. More parts than vertices leave parts empty, with a warning.
    balance : float
        A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
    balance_on, balance_on_ratio
        A second cap, as in :func:`spring`: a part must have room for both. Takes 12 bytes more per vertex.
    batch : int, optional
        Vertices decided about in one frozen state. 1 is the sequential rule of the paper; by default 1 below 2**16
        vertices, else 1,024. It changes the result slightly; the number of threads never does.
    seed : int, optional
        For uniformity with the other partitioners; there is no random choice.
    tmp_dir : path, optional
        Where the adjacency is built if it exceeds the memory limit; by default where the system has temporary files.
    threads, memory_limit, progress
        As in :func:`spring`.

    Returns
    -------
    VertexPartition
        With ``assignment``, ``loads`` and ``cap``; with ``balance_on`` also ``weight_loads`` and ``weight_cap``.

    Raises
    ------
    ParameterError, TypeError
        A parameter that cannot be; the text says what is valid.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.

    Notes
    -----
    Source: Stanton and Kliot, "Streaming Graph Partitioning for Large Distributed Graphs", KDD 2012. Of equal parts the
    one with the fewest vertices is taken, then the lowest. Vertices without neighbours come last, each to the part with
    the fewest vertices.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    >>> fp.ldg(two_triangles, k=2).loads
    array([3, 3])
    """
    given = _checked(k, balance, balance_on, balance_on_ratio, batch, seed)
    fields, opened = _stream("ldg", edges, given, tmp_dir, threads, memory_limit, progress)
    return vertex_partition("ldg", given, fields, opened)


def fennel(
    edges: Any,
    k: int,
    *,
    balance: float = 1.1,
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    batch: int | None = None,
    seed: int | None = 0,
    tmp_dir: StrPath | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> VertexPartition:
    """Partition the vertices with Fennel.

    Vertices stream by in the order of their ids, each with all its neighbours, and go to the part with the largest
    ``e(v, p) - alpha * gamma * |p| ** (gamma - 1)``: e(v, p) of their neighbours are there, ``gamma = 1.5`` and
    ``alpha = sqrt(k) * m / n ** 1.5``, where m counts edges without loops. Takes 4 bytes per vertex beside the
    adjacency.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts. An open graph keeps its adjacency for the next call.
    k : int
        Number of parts, 1 to 2**20. More parts than vertices leave parts empty, with a warning.
    balance : float
        A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
    balance_on, balance_on_ratio
        A second cap, as in :func:`spring`: a part must have room for both. Takes 12 bytes more per vertex.
    batch : int, optional
        Vertices decided about in one frozen state. 1 is the sequential rule of the paper; by default 1 below 2**16
        vertices, else 1,024. It changes the result slightly; the number of threads never does.
    seed : int, optional
        For uniformity with the other partitioners; there is no random choice.
    tmp_dir : path, optional
        Where the adjacency is built if it exceeds the memory limit; by default where the system has temporary files.
    threads, memory_limit, progress
        As in :func:`spring`.

    Returns
    -------
    VertexPartition
        With ``assignment``, ``loads`` and ``cap``; with ``balance_on`` also ``weight_loads`` and ``weight_cap``.

    Raises
    ------
    ParameterError, TypeError
        A parameter that cannot be; the text says what is valid.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.

    Notes
    -----
    Source: Tsourakakis et al., "FENNEL: Streaming Graph Partitioning for Massive Scale Graphs", WSDM 2014. Ties and
    vertices without neighbours as in :func:`ldg`.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    >>> fp.fennel(two_triangles, k=2).loads
    array([3, 3])
    """
    given = _checked(k, balance, balance_on, balance_on_ratio, batch, seed)
    fields, opened = _stream("fennel", edges, given, tmp_dir, threads, memory_limit, progress)
    return vertex_partition("fennel", given, fields, opened)


def reldg(
    edges: Any,
    k: int,
    *,
    balance: float = 1.03,
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    passes: int = 10,
    batch: int | None = None,
    seed: int | None = 0,
    tmp_dir: StrPath | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> VertexPartition:
    """Partition the vertices with LDG, streamed again and again.

    As :func:`ldg`; from the second pass on, the parts begin empty again, and a neighbour that this pass has not placed
    counts for the part that the pass before gave it.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts. An open graph keeps its adjacency for the next call.
    k : int
        Number of parts, 1 to 2**20. More parts than vertices leave parts empty, with a warning.
    balance : float
        A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
    balance_on, balance_on_ratio
        A second cap, as in :func:`spring`: a part must have room for both. Takes 12 bytes more per vertex.
    passes : int
        How often the vertices stream by.
    batch : int, optional
        Vertices decided about in one frozen state. 1 is the sequential rule of the paper; by default 1 below 2**16
        vertices, else 1,024. It changes the result slightly; the number of threads never does.
    seed : int, optional
        For uniformity with the other partitioners; there is no random choice.
    tmp_dir : path, optional
        Where the adjacency is built if it exceeds the memory limit; by default where the system has temporary files.
    threads, memory_limit, progress
        As in :func:`spring`.

    Returns
    -------
    VertexPartition
        With ``assignment``, ``loads`` and ``cap``; with ``balance_on`` also ``weight_loads`` and ``weight_cap``.

    Raises
    ------
    ParameterError, TypeError
        A parameter that cannot be; the text says what is valid.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.

    Notes
    -----
    Source: Nishimura and Ugander, "Restreaming Graph Partitioning: Simple Versatile Algorithms for Advanced Balancing",
    KDD 2013. The cap holds after every pass; the last pass is the result, whether or not it is the best.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    >>> fp.reldg(two_triangles, k=2).loads
    array([3, 3])
    """
    given = _checked(k, balance, balance_on, balance_on_ratio, batch, seed)
    given["passes"] = parameters.integer("passes", passes, 1, 2**31)
    fields, opened = _stream("ldg", edges, given, tmp_dir, threads, memory_limit, progress)
    return vertex_partition("reldg", given, fields, opened)


def refennel(
    edges: Any,
    k: int,
    *,
    balance: float = 1.1,
    balance_on: npt.ArrayLike | None = None,
    balance_on_ratio: float = 1.05,
    passes: int = 10,
    batch: int | None = None,
    seed: int | None = 0,
    tmp_dir: StrPath | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress | None = None,
) -> VertexPartition:
    """Partition the vertices with Fennel, streamed again and again.

    As :func:`fennel`; from the second pass on, the parts begin empty again, and a neighbour that this pass has not
    placed counts for the part that the pass before gave it.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts. An open graph keeps its adjacency for the next call.
    k : int
        Number of parts, 1 to 2**20. More parts than vertices leave parts empty, with a warning.
    balance : float
        A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices.
    balance_on, balance_on_ratio
        A second cap, as in :func:`spring`: a part must have room for both. Takes 12 bytes more per vertex.
    passes : int
        How often the vertices stream by.
    batch : int, optional
        Vertices decided about in one frozen state. 1 is the sequential rule of the paper; by default 1 below 2**16
        vertices, else 1,024. It changes the result slightly; the number of threads never does.
    seed : int, optional
        For uniformity with the other partitioners; there is no random choice.
    tmp_dir : path, optional
        Where the adjacency is built if it exceeds the memory limit; by default where the system has temporary files.
    threads, memory_limit, progress
        As in :func:`spring`.

    Returns
    -------
    VertexPartition
        With ``assignment``, ``loads`` and ``cap``; with ``balance_on`` also ``weight_loads`` and ``weight_cap``.

    Raises
    ------
    ParameterError, TypeError
        A parameter that cannot be; the text says what is valid.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.

    Notes
    -----
    Source: Nishimura and Ugander, "Restreaming Graph Partitioning: Simple Versatile Algorithms for Advanced Balancing",
    KDD 2013. There, alpha may grow from pass to pass; here it stays, which was as good on most of the graphs tried. The
    last pass is the result, whether or not it is the best.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], dtype=np.uint32)
    >>> fp.refennel(two_triangles, k=2).loads
    array([3, 3])
    """
    given = _checked(k, balance, balance_on, balance_on_ratio, batch, seed)
    given["passes"] = parameters.integer("passes", passes, 1, 2**31)
    fields, opened = _stream("fennel", edges, given, tmp_dir, threads, memory_limit, progress)
    return vertex_partition("refennel", given, fields, opened)


def _checked(
    k: int,
    balance: float,
    balance_on: npt.ArrayLike | None,
    balance_on_ratio: float,
    batch: int | None,
    seed: int | None,
) -> dict[str, Any]:
    return {
        "k": parameters.parts(k),
        "balance": parameters.ratio("balance", balance),
        "balance_on": parameters.weights("balance_on", balance_on),
        "balance_on_ratio": parameters.ratio("balance_on_ratio", balance_on_ratio),
        "batch": None if batch is None else parameters.integer("batch", batch, 1, 2**63),
        "seed": parameters.seed(seed),
    }


def _stream(
    rule: str,
    edges: Any,
    given: dict[str, Any],
    tmp_dir: StrPath | None,
    threads: int | None,
    memory_limit: int | str | None,
    progress: Progress | None,
) -> tuple[Fields, Edges]:
    """Call the core with checked parameters; without ``passes``, one pass."""
    options = run_options(threads, memory_limit, progress, tmp_dir)
    opened = open_edges(edges, threads=threads, memory_limit=memory_limit, progress=progress)
    in_core = {"passes": 1, **given}
    del in_core["seed"]
    symmetric = opened.kind == "symmetric"
    return _core.vertex_stream(
        opened._source, rule=rule, symmetric=symmetric, **in_core, options=options
    ), opened
