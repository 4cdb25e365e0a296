"""Partitioners of the user, with the checks of the built-in ones."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import Any, Literal, Unpack, overload

import numpy as np
import numpy.typing as npt

from ...core import parameters
from ...core.options import Options, run_options, with_options
from ...core.parameters import Of, Progress
from ...errors import CapacityError, CapacityWarning, ParameterError, warn
from ...graphs.graph import Graph
from ...graphs.opening import open_graph
from ..partition import EdgePartition, Partition, VertexPartition
from .common import cap_of

BlockPartitioner = Callable[[npt.NDArray[np.uint32]], Any]
"""Takes the records of a block and returns their parts, or vertices and the parts of these."""

_DEFERRED = np.iinfo(np.int32).max


@overload
def custom(
    graph: Any,
    k: int,
    partitioner: BlockPartitioner | npt.ArrayLike,
    *,
    of: Literal["vertices"] = "vertices",
    balance: float | None = None,
    passes: int = 1,
    block: int = 65_536,
    name: str | None = None,
    **options: Unpack[Options],
) -> VertexPartition: ...
@overload
def custom(
    graph: Any,
    k: int,
    partitioner: BlockPartitioner | npt.ArrayLike,
    *,
    of: Literal["edges"],
    balance: float | None = None,
    passes: int = 1,
    block: int = 65_536,
    name: str | None = None,
    **options: Unpack[Options],
) -> EdgePartition: ...
@with_options
def custom(
    graph: Any,
    k: int,
    partitioner: BlockPartitioner | npt.ArrayLike,
    *,
    of: Of = "vertices",
    balance: float | None = None,
    passes: int = 1,
    block: int = 65_536,
    name: str | None = None,
    **options: Unpack[Options],
) -> VertexPartition | EdgePartition:
    """Partition with your own function, or wrap an array.

    The function is called with one block of records after the other. The result is checked: every item has a part in
    ``0..k-1``, and the cap holds. It knows its graph, so you can measure, save and export it like results of the
    built-in partitioners. This needs 4 bytes per vertex or per record, plus the memory of the function.

    Parameters
    ----------
    graph : path, array or Graph
        What :func:`open_graph` accepts.
    k : int
        Number of parts, 1 to 2**20.
    partitioner : callable or array of integers
        Called with the records of each block, a uint32 array of shape (b, 2), in stream order. All ids are below n.
        For ``of="edges"`` it returns the parts of these b records. For ``of="vertices"`` it returns a pair of arrays,
        vertices and their parts, or None. A vertex that is named again moves. Vertices that are never named go, in id
        order, to the parts with the fewest vertices. An array is the whole assignment.
    of : {"vertices", "edges"}
        Partition the vertices or the edge records.
    balance : float, optional
        A ratio >= 1. A part with more than ``ceil(balance * n / k)`` vertices (``m`` records) is refused. Default: no
        bound.
    passes : int
        Number of times the stream is read. The last answer of the function counts.
    block : int
        Records of a block.
    name : str, optional
        The ``algorithm`` of the result. Default: the name of the function, or "user".
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`. Only one thread calls the function.

    Returns
    -------
    VertexPartition or EdgePartition
        By ``of``.

    Raises
    ------
    ParameterError, TypeError
        The function returned something invalid. The text names the record or vertex. Exceptions of the function itself
        are not caught.
    CapacityError
        A part is larger than ``balance`` allows.

    Notes
    -----
    This is the custom interface of SDT-GNN, section IV-A, and CATGNN, section 3.5.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> ring = np.array([[v, (v + 1) % 6] for v in range(6)])
    >>> def by_source(records):
    ...     return records[:, 0] // 3
    >>> p = fp.algorithms.custom(ring, 2, by_source, of="edges")
    >>> p.assignment
    array([0, 0, 0, 1, 1, 1], dtype=uint8)
    >>> fp.evaluate(ring, p).summary["rf"].item()
    1.3333333333333333
    >>> fp.algorithms.custom(ring, 2, lambda records: (records[:, 0], records[:, 0] // 3)).assignment
    array([0, 0, 0, 1, 1, 1], dtype=int32)
    """
    k = parameters.parts(k)
    parameters.choice("of", of, ("vertices", "edges"))
    passes = parameters.integer("passes", passes, 1, 2**31)
    block = parameters.integer("block", block, 1, 2**31)
    ratio = None if balance is None else parameters.ratio("balance", balance)
    run = run_options(**options)
    opened = open_graph(graph, **options)
    items = opened.num_edges if of == "edges" else opened.num_vertices
    if callable(partitioner):
        blocks = _blocks(opened, passes, block, run.progress)
        answers = _of_records if of == "edges" else _of_vertices
        array = answers(opened, k, partitioner, blocks)
        default = getattr(partitioner, "__name__", type(partitioner).__name__)
    else:
        array, default = np.asarray(partitioner), "user"
        if len(array) != items:
            what = "record" if of == "edges" else "vertex"
            raise ParameterError(
                f"partitioner: {len(array)} parts for {items} items. Expected one per {what}"
            )
    partition: Partition = EdgePartition(array, k) if of == "edges" else VertexPartition(array, k)
    if ratio is not None:
        partition.cap = cap_of(ratio, items, k)
        largest = int(partition.loads.argmax())
        if partition.loads[largest] > partition.cap:
            raise CapacityError(
                f"balance: part {largest} has {partition.loads[largest]} {partition._items}, more than "
                f"{partition.cap}. Raise balance, or let the partitioner keep the cap"
            )
    partition.algorithm = str(default if name is None else name)
    partition.parameters = {"k": k, "of": of, "balance": ratio, "passes": passes, "block": block}
    partition.num_vertices, partition.num_edges = opened.num_vertices, opened.num_edges
    partition.loops, partition.checksum = opened.identify(run)
    partition.graph = opened
    if k > items > 0:
        message = f"k={k} parts for {items} {partition._items}. At least {k - items} parts are empty"
        warn(message, CapacityWarning)
    return partition  # type: ignore[return-value]


def _blocks(
    graph: Graph, passes: int, block: int, progress: Progress | None
) -> Iterator[tuple[int, npt.NDArray[np.uint32]]]:
    """Yield the number of the first record and the records of each block, pass after pass."""
    m = graph.num_edges
    for number in range(passes):
        graph._check_unchanged()
        for first in range(0, m, block):
            yield first, graph._source.block(first, min(first + block, m))
            if progress is not None:
                progress("custom", number * m + min(first + block, m), passes * m)
    graph._check_unchanged()


def _of_records(
    graph: Graph, k: int, partitioner: BlockPartitioner, blocks: Iterator[tuple[int, npt.NDArray[np.uint32]]]
) -> npt.NDArray[Any]:
    parts = np.zeros(graph.num_edges, dtype=np.int32)
    for first, records in blocks:
        given = _integers("the parts of the records", partitioner(records))
        if len(given) != len(records):
            raise ParameterError(
                f"partitioner: returned {len(given)} parts for the {len(records)} records from record {first} on"
            )
        _refuse_foreign(given, k, "record", np.arange(first, first + len(records)))
        parts[first : first + len(records)] = given
    return parts


def _of_vertices(
    graph: Graph, k: int, partitioner: BlockPartitioner, blocks: Iterator[tuple[int, npt.NDArray[np.uint32]]]
) -> npt.NDArray[Any]:
    parts = np.full(graph.num_vertices, _DEFERRED, dtype=np.int32)
    for first, records in blocks:
        answer = partitioner(records)
        if answer is None:
            continue
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise TypeError(
                f"partitioner: expected a pair (vertices, parts) or None, got {type(answer).__name__} for the block "
                f"from record {first} on"
            )
        vertices, given = _integers("the vertices", answer[0]), _integers("the parts", answer[1])
        if len(vertices) != len(given):
            raise ParameterError(f"partitioner: returned {len(vertices)} vertices with {len(given)} parts")
        if len(vertices) and not 0 <= vertices.min() <= vertices.max() < len(parts):
            raise ParameterError(f"partitioner: returned a vertex outside 0..{len(parts) - 1}")
        _refuse_foreign(given, k, "vertex", vertices)
        parts[vertices] = given
    _place_rest(parts, k)
    return parts


def _integers(what: str, values: object) -> npt.NDArray[Any]:
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError(
            f"partitioner: {what} must be a one-dimensional array of integers, got {array.dtype} of shape {array.shape}"
        )
    return array


def _refuse_foreign(parts: npt.NDArray[Any], k: int, item: str, ids: npt.NDArray[Any]) -> None:
    bad = np.flatnonzero((parts < 0) | (parts >= k)) if parts.size else parts
    if bad.size:
        first = int(bad[0])
        raise ParameterError(
            f"partitioner: {item} {ids[first]} got part {parts[first]}, outside 0..{k - 1} (k={k})"
        )


def _place_rest(parts: npt.NDArray[np.int32], k: int) -> None:
    """Assign the vertices without a part, in id order, to the parts with the fewest vertices (ties: the lowest)."""
    rest = np.flatnonzero(parts == _DEFERRED)
    fewest = list(zip(np.bincount(parts[parts != _DEFERRED], minlength=k).tolist(), range(k), strict=True))
    heapq.heapify(fewest)
    for vertex in rest:
        load, parts[vertex] = fewest[0]
        heapq.heapreplace(fewest, (load + 1, int(parts[vertex])))
