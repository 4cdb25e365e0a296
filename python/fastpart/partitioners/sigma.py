"""SIGMA: parts that share vertices and edges evenly, from clusters and one stream."""

from __future__ import annotations

from typing import Any

from .. import _core, parameters
from ..edges import open_edges
from ..errors import ParameterError
from ..parameters import Progress, StrPath, run_options
from ..partition import EdgePartition, VertexPartition
from .common import edge_partition, vertex_partition

_OF_VERTICES: dict[str, Any] = {
    "objective": "multi",
    "volume_balance": 1.10,
    "tau": 0.5,
    "gamma": 2.5,
    "strict": True,
    "batch": None,
}
"""Defaults of what has no meaning in edge mode."""
_OF_EDGES: dict[str, Any] = {"balance_weight": 1.0, "bands": 8}
"""Defaults of what has no meaning in vertex mode."""


def sigma(
    edges: Any,
    k: int,
    *,
    mode: str = "vertex",
    objective: str = "multi",
    balance: float | None = None,
    volume_balance: float = 1.10,
    tau: float = 0.5,
    gamma: float = 2.5,
    balance_weight: float = 1.0,
    bands: int = 8,
    strict: bool = True,
    on_infeasible: str = "warn",
    batch: int | None = None,
    seed: int | None = 0,
    out: StrPath | None = None,
    threads: int | None = None,
    memory_limit: int | str | None = None,
    tmp_dir: StrPath | None = None,
    progress: Progress | None = None,
) -> VertexPartition | EdgePartition:
    """Partition the vertices, or the edge records, with SIGMA: even in vertices and edges at once.

    Clusters the vertices by modularity, maps the clusters to parts, preassigns what they agree on, and streams the
    rest to the parts of the best scores. Needs the neighbours of all vertices: 8 bytes per edge, in memory, or in a
    temporary file where the budget is too small; kept by ``edges`` for further calls. Beside them, 24 bytes per vertex;
    with ``objective="multi"`` and k > 128, 8 and one bit per part.

    Parameters
    ----------
    edges : path, array or Edges
        What :func:`open_edges` accepts.
    k : int
        Number of parts, 1 to 2**20.
    mode : {"vertex", "edge"}
        What gets parts: vertices (for DistDGL-style training) or edge records (for DistGNN-style training).
    objective : {"multi", "cut"}
        Vertex mode: what a part is chosen for. "cut": few cut edges. "multi": also few replicas of vertices.
    balance : float, optional
        A ratio >= 1: no part gets more than ``ceil(balance * n / k)`` vertices (default 1.03), in edge mode more than
        ``ceil(balance * m / k)`` records (default 1.10).
    volume_balance : float
        Vertex mode: a ratio >= 1. The volume of a part is the sum of degree + 1 over its vertices; with V that of all
        vertices, no part gets more than ``ceil(volume_balance * V / k)``.
    tau : float
        Vertex mode, "multi": weight of the replicas, 0 or more.
    gamma : float
        Vertex mode: a part's penalty is its relative load to the power of ``gamma - 1.1``; above 1.1.
    balance_weight : float
        Edge mode: ``lambda`` of the paper, weight of the balance of records and replicas in the score, >= 0.
    bands : int
        Edge mode: records that no cluster places are streamed in so many bands of ascending lower degree, 1 to 64, each
        a pass. 1 is the order of the file, as in the paper; 8 make 2 to 20 % fewer replicas.
    strict : bool
        Vertex mode: repair what the stream leaves above a cap. False is the paper's rule, which can exceed both caps.
    on_infeasible : {"warn", "error"}
        Vertex mode: what to do if the cap on volume had to be raised.
    batch : int, optional
        Vertex mode: vertices decided against one frozen state; 1 is the paper's sequential rule. By default 1 below
        2**16 vertices or 2**18 records, else n / 1,024, at most 1,024. The number of threads never changes the result.
    seed : int, optional
        For uniformity with the other partitioners; SIGMA has no random choice.
    out : path of a .npy, optional
        Edge mode: where the parts of the records go, as a mapped file instead of memory.
    threads, memory_limit, progress
        As in :func:`spring`.
    tmp_dir : path, optional
        Where neighbours go that do not fit into memory. Default: the system's folder for temporary files. On a
        file system in memory (tmpfs, as ``/dev/shm``) they count against the memory limit.

    Returns
    -------
    VertexPartition or EdgePartition
        By ``mode``. That of vertices has ``cap``, ``volume_loads`` and ``volume_cap``; with ``strict=False`` no caps.

    Raises
    ------
    ParameterError, TypeError
        A parameter that cannot be; the text says what is valid.
    CapacityError
        The cap on volume had to be raised, and ``on_infeasible="error"``.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.

    Warns
    -----
    CapacityWarning
        The cap on volume could not be kept. It is raised to what was reached, at most
        ``ceil(V / k) + max(degree + 1)``; where that was out of reach, all vertices are dealt by descending degree.

    Notes
    -----
    Source: SIGMA, section 3. A vertex is present in a part if it or a neighbour is a member. So it is present wherever
    a neighbour is placed, and the replicas that "multi" counts are its neighbours that would be new to the part.
    Parallel edges count as often as there are. Ties go to the lowest part. Isolated vertices come last, to the parts
    with the fewest vertices.

    The repair moves vertices out of parts above a cap, those first that cut the fewest edges; then it exchanges
    vertices for others of lower degree.

    Edge mode: a record whose ends prefer the same part (that of their cluster) goes there, up to the cap. The others
    follow in their ``bands``, each to the open part p of the largest
    ``g(u) + g(v) + balance_weight * (b_records / 2 + b_replicas / 2)``:
    ``g(u) = 2 - d(u) / (d(u) + d(v))`` if u is in p already, else 0; ``b = (max - load) / max``. A part is open below
    a limit that rises with the fraction t of them that is placed, from 0.9 of the cap (or the largest load so far,
    if that is more) as the square root of t. Loops come last, each to the least loaded part that holds its
    vertex. The result takes 1 byte per record for k <= 255, 2 for k <= 32,767, else 4; beside it k bits (in words of
    64) and 8 bytes per vertex, or 20 bytes while clustering.

    ``balance_on`` is not among the parameters: with vertices and volume bounded already, a third bound could not be
    promised. :func:`spring` takes it.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> two_triangles = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]])
    >>> part = fp.sigma(two_triangles, k=2)
    >>> part.assignment
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    >>> part.volume_loads, part.volume_cap
    (array([9, 9]), 10)
    """
    parameters.choice("mode", mode, ("vertex", "edge"))
    given: dict[str, Any] = {
        "k": parameters.parts(k),
        "mode": mode,
        "balance": parameters.ratio(
            "balance", (1.03 if mode == "vertex" else 1.10) if balance is None else balance
        ),
        "seed": parameters.seed(seed),
    }
    of_vertices: dict[str, Any] = {
        "objective": parameters.choice("objective", objective, ("multi", "cut")),
        "volume_balance": parameters.ratio("volume_balance", volume_balance),
        "tau": parameters.number("tau", tau),
        "gamma": parameters.number("gamma", gamma),
        "strict": parameters.flag("strict", strict),
        "batch": None if batch is None else parameters.integer("batch", batch, 1, 2**63),
    }
    of_edges: dict[str, Any] = {
        "balance_weight": parameters.number("balance_weight", balance_weight),
        "bands": parameters.integer("bands", bands, 1, 64),
    }
    parameters.choice("on_infeasible", on_infeasible, ("warn", "error"))
    options = run_options(threads, memory_limit, progress, tmp_dir)
    opened = open_edges(edges, threads=threads, memory_limit=memory_limit, progress=progress)
    core: dict[str, Any] = {
        "symmetric": opened.kind == "symmetric",
        "k": given["k"],
        "balance": given["balance"],
        "options": options,
    }
    if mode == "edge":
        _refuse("vertex", of_vertices)
        return edge_partition(
            "sigma",
            given | of_edges,
            opened,
            out,
            lambda file: _core.sigma_edge(opened._source, **core, **of_edges, out=file),
        )
    _refuse("edge", of_edges)
    if out is not None:
        raise ParameterError('out: it belongs to mode="edge"; save a vertex partition with .save(...)')
    fields = _core.sigma_vertex(opened._source, **core, **of_vertices)
    return vertex_partition("sigma", given | of_vertices, fields, opened, on_infeasible)


def _refuse(mode: str, given: dict[str, Any]) -> None:
    """Refuse parameters of the other mode, unless they are as they are by default."""
    defaults = _OF_VERTICES | _OF_EDGES
    for name, value in given.items():
        if value != defaults[name]:
            raise ParameterError(f'{name}: it belongs to mode="{mode}"')
