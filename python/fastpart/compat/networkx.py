"""Partitions of graphs of networkx, by the names of their nodes, and a backend for its dispatch, tried with 3.6.

networkx finds an installed package by itself: ``nx.community.kernighan_lin_bisection(graph, backend="fastpart")``. This
is its only function that a partitioner can answer.
"""

from __future__ import annotations

from typing import Any

from ..graphs.opening import open_graph
from ..graphs.sources import nodes_of
from ..partitions.partitioners.builtin import multilevel
from ..partitions.partitioners.choosing import partition

__all__ = ["partition_nodes"]


def __dir__() -> list[str]:
    return __all__


def partition_nodes(
    graph: Any, k: int, *, weight: str | None = "weight", **parameters: Any
) -> list[set[Any]]:
    """Partition the nodes of a graph of networkx.

    Parameters
    ----------
    graph : networkx.Graph, DiGraph, MultiGraph or MultiDiGraph
        With nodes of any kind.
    k : int
        Number of parts, 1 to 2**20.
    weight : str, optional
        Attribute of the edges that holds their weights, 1 where it is missing. None, or an attribute that no edge has:
        all are 1.
    **parameters
        Of :func:`fastpart.partition`, such as ``balance``, ``effort`` and ``seed``.

    Returns
    -------
    list of set
        The nodes of each part, as functions of ``networkx.community`` return them.

    Raises
    ------
    ParameterError, TypeError
        An invalid parameter. The text says what is valid.

    See Also
    --------
    fastpart.partition : Takes the graph, too, and returns an array with more about it.

    Examples
    --------
    >>> import networkx as nx
    >>> from fastpart.compat.networkx import partition_nodes
    >>> graph = nx.barbell_graph(4, 0)
    >>> graph = nx.relabel_nodes(graph, dict(enumerate("abcdefgh")))
    >>> [sorted(part) for part in partition_nodes(graph, 2)]
    [['a', 'b', 'c', 'd'], ['e', 'f', 'g', 'h']]
    """
    return _sets(graph, partition(_opened(graph, weight), k, of="vertices", **parameters).assignment, k)


def _opened(graph: Any, weight: str | None) -> Any:
    weighted = weight is not None and any(weight in edge for *_, edge in graph.edges(data=True))
    return open_graph(graph, weights=weight if weighted else None)


def _sets(graph: Any, assignment: Any, k: int) -> list[set[Any]]:
    """Return the nodes of each part."""
    nodes = nodes_of(graph)
    parts: list[set[Any]] = [set() for _ in range(k)]
    for node, part in zip(range(len(graph)) if nodes is None else nodes, assignment.tolist(), strict=True):
        parts[part].add(node)
    return parts


# What networkx calls. The module is the backend.


class BackendGraph:
    """A graph of networkx that is given to this backend."""

    __networkx_backend__ = "fastpart"

    def __init__(self, graph: Any) -> None:
        self.graph = graph


def convert_from_nx(graph: Any, **_: Any) -> BackendGraph:
    """Return the graph for functions of this backend."""
    return BackendGraph(graph)


def convert_to_nx(result: Any, **_: Any) -> Any:
    """Return a result, or a graph, for networkx."""
    return result.graph if isinstance(result, BackendGraph) else result


def kernighan_lin_bisection(
    converted: BackendGraph,
    partition: Any = None,
    max_iter: int = 10,
    weight: str | None = "weight",
    seed: Any = None,
) -> tuple[set[Any], set[Any]]:
    """Return two sets of nodes of equal size, or that differ by one, with few edges between.

    The scheme is that of :func:`fastpart.multilevel`, which needs no ``max_iter``. networkx goes on to its next backend
    if it reads NotImplementedError.
    """
    if partition is not None:
        raise NotImplementedError("partition: not taken. fastpart.refine improves a partition")
    if not isinstance(weight, str | None):
        raise NotImplementedError("weight: a function is not taken. Pass the name of an attribute")
    if seed is not None and not isinstance(seed, int):
        from networkx.utils import create_py_random_state

        seed = create_py_random_state(seed).getrandbits(63)
    graph = converted.graph
    halves = multilevel(_opened(graph, weight), 2, balance=1.0, seed=seed or 0)
    left, right = _sets(graph, halves.assignment, 2)
    return left, right
