"""Functions that start from a vertex partition: they take its graph and, to improve it, its bounds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ...core import parameters
from ...core.ids import carried
from ...core.notes import log
from ...core.options import RunOptions, run_options
from ...errors import MemoryBudgetError, ParameterError, arg, code
from ...graphs.graph import Graph
from ...graphs.opening import open_graph
from ..part_rows import typed_of
from ..partition import VertexPartition, partition_given, refuse_other_graph

_PARTS_ALONE = code("VertexPartition(p, p.k)", "its assignment.npy with -k")
"""A partition of the same parts that remembers nothing of how it was made."""

NONE = np.uint32(2**32 - 1)
"""Part of a vertex that the partition does not know."""

_INHERITED = (
    "balance",
    "min_balance",
    "volume_balance",
    "balance_on_ratio",
    "sizes",
    "connected",
    "objective",
    "machines",
)
"""Parameters of a refinement whose default is that of the partition."""


def begin(
    name: str, arguments: Mapping[str, Any], options: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the arguments of a call with graph, k, start and bounds filled in, and what made the start."""
    k = None if arguments["k"] is None else parameters.parts(arguments["k"])
    graph = open_graph(arguments["graph"], **options)
    if name == "update":  # the graph and the number of parts may be others
        start = start_of(name, arguments["partition"], None)
        parts = _carried_parts(start, graph, options)
    else:
        start = start_of(name, arguments["partition"], k, graph)
        _refuse_other_graph(start, graph, options)
        parts = np.asarray(start.assignment).view(np.uint32)
    filled: dict[str, Any] = {"graph": graph, "k": k or start.k, "partition": parts}
    if name in ("refine", "update"):
        filled |= _bounds(name, start, arguments, filled["k"])
    origin = {"algorithm": start.algorithm, "parameters": start.parameters}
    return {**arguments, **filled}, origin


def start_of(name: str, partition: Any, k: Any, graph: Graph | None = None) -> VertexPartition:
    """Return what a caller gave as a partition of the vertices."""
    k = None if k is None else parameters.parts(k)
    partition = partition_given(partition, graph, k, of="vertices")
    if not isinstance(partition, VertexPartition):
        raise ParameterError(f"partition: it has parts of edges. {name}() needs a partition of the vertices")
    if k not in (None, partition.k):
        raise ParameterError(f"k: {k}, but the partition has {partition.k} parts")
    return partition


def _refuse_other_graph(start: VertexPartition, graph: Graph, options: Mapping[str, Any]) -> None:
    if graph is not start.graph:
        checksum = graph.identify(run_options(**options))[1] if start.checksum is not None else None
        refuse_other_graph(start, graph.num_vertices, graph.num_edges, checksum)


def _carried_parts(
    start: VertexPartition, graph: Graph, options: Mapping[str, Any]
) -> npt.NDArray[np.uint32]:
    """Return the old part of each vertex of the graph that the partition is updated for, if it had one."""
    parts = np.asarray(start.assignment).view(np.uint32)
    if graph is start.graph:
        return parts
    old, new = start._id_tables, graph._id_tables
    if old and new:
        carried_parts = carried(old, new, parts, _none(graph.num_vertices, options))
        known = int(np.count_nonzero(carried_parts != NONE))
        if known < len(parts):
            log.info(
                "update: %s of %s vertices of the partition are gone from the graph, and %s vertices are new",
                f"{len(parts) - known:,}",
                f"{len(parts):,}",
                f"{len(carried_parts) - known:,}",
            )
        return carried_parts
    if (old or new) and not _is_same(start, graph, options):
        raise ParameterError(_UNMATCHED["graph" if new else "partition"])
    return _extended(start, graph, parts, options)


_UNMATCHED = {
    "graph": "partition: the vertices of the graph have ids, but the partition does not say which ids its rows are of. "
    "Pass a partition directory that was saved with its graph, which keeps the ids, or a partition that knows its "
    "graph",
    "partition": "graph: it was opened from numbers of vertices, but the vertices of the partition have ids. Open a "
    "newer version of the source that was partitioned, as a table with ids or as a graph directory",
}
"""Why a graph and a partition cannot be matched, by which of them has ids."""


def _is_same(start: VertexPartition, graph: Graph, options: Mapping[str, Any]) -> bool:
    """Return whether the partition was made from these records."""
    if start.checksum is None or start.num_vertices != graph.num_vertices:
        return False
    return start.checksum == graph.identify(run_options(**options))[1]


def _extended(
    start: VertexPartition, graph: Graph, parts: npt.NDArray[np.uint32], options: Mapping[str, Any]
) -> npt.NDArray[np.uint32]:
    """Return the parts of all vertices of a graph that has grown. The new ones have none, and come last."""
    if graph.num_vertices < len(parts):
        raise ParameterError(
            f"graph: it has {graph.num_vertices} vertices, the partition has {len(parts)}. Without ids vertices are "
            "never removed. If those that are missing have no edges, open the graph with "
            f"{arg('num_vertices', len(parts))}"
        )
    if graph.types is not None:
        before = typed_of(start.manifest or {}) or (start.graph and start.graph._typed)
        if graph.num_vertices != len(parts) or (before and before.types != graph.types):
            raise ParameterError(
                "graph: its types have other numbers of vertices than those of the partition. A vertex then has "
                "another number, since each type is a range of vertices. Partition the new graph from scratch, or read "
                "graphs with ids, which are matched by them"
            )
    if graph.num_vertices == len(parts):
        return parts
    extended = _none(graph.num_vertices, options)
    extended[: len(parts)] = parts
    return extended


def _none(n: int, options: Mapping[str, Any]) -> npt.NDArray[np.uint32]:
    """Return room for the parts of all vertices, which have none yet."""
    given = RunOptions.of(options).memory_limit
    limit = _core.memory_budget() if given is None else given
    try:
        if NONE.itemsize * n > limit:
            raise MemoryError
        return np.full(n, NONE)
    except MemoryError:
        raise MemoryBudgetError(
            f"update: the parts of {n:,} vertices need {NONE.itemsize * n / 1e6:,.1f} MB of memory, but the budget is "
            f"{limit / 1e6:,.1f} MB. Raise memory_limit, or check the number of vertices of the graph"
        ) from None


def _bounds(name: str, start: VertexPartition, arguments: Mapping[str, Any], k: int) -> dict[str, Any]:
    """Return the given bounds and objective, and those of the partition where none are given."""
    types = start.bounded_types or (None,)
    known = dict(start.parameters)
    inherited: dict[str, Any] = {}
    if start.weight_loads is not None and arguments["balance_on"] is None and None not in types:
        inherited["balance_on"] = list(types) if start.weight_loads.ndim == 2 else types[0]
    if arguments["relation_weights"] is None and "relation_weights" in known:
        inherited["relation_weights"] = known["relation_weights"]
    if start.weight_loads is not None and arguments["balance_on"] is None and "balance_on" not in inherited:
        raise ParameterError(
            f"balance_on: the partition balances weights, which it does not keep. Pass them again, or {name} "
            "VertexPartition(p, p.k), which balances vertices only"
        )
    if known.get("fixed") is not None and arguments["fixed"] is None:
        raise ParameterError(
            f"fixed: the partition has fixed vertices, which it does not keep. Pass them again, or {name} "
            f"{_PARTS_ALONE}, "
            "in which all are free"
        )
    if name == "update":
        if known.get("objective") == "halo":
            raise ParameterError(
                f"partition: it was made with {arg('objective', 'halo')}, and "
                f"{code('update()', '`fastpart update`')} knows the "
                f"cut only. Update {_PARTS_ALONE}, or partition the new graph from scratch"
            )
        if k != start.k:
            known["machines"] = known["sizes"] = None
    known["objective"] = "halo" if known.get("objective") == "halo" else "cut"
    if start.volume_cap is None:
        known["volume_balance"] = None
    if start.cap is None:
        known["balance"] = None
    elif "balance" not in known:  # the ratio whose cap this is
        known["balance"] = max(1.0, (int(np.max(start.cap)) - 0.5) * start.k / max(1, len(start)))
    defaults = {"balance": 1.03, "balance_on_ratio": 1.05, "connected": False}
    return inherited | {
        name: next(
            (value for value in (arguments[name], known.get(name)) if value is not None), defaults.get(name)
        )
        for name in _INHERITED
        if name in arguments
    }
