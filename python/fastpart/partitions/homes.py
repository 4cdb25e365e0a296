"""Vertex partitions from edge partitions."""

from __future__ import annotations

import os
from typing import Any, Unpack

from .. import _core
from ..core.options import Options, run_options, with_options
from ..core.parameters import StrPath
from ..graphs.opening import open_graph
from .partition import EdgePartition, VertexPartition, read_partition, refuse_other_graph


@with_options
def home_parts(
    graph: Any, edge_partition: EdgePartition | StrPath, **options: Unpack[Options]
) -> VertexPartition:
    """Assign every vertex to the part that has most of its records in an edge partition.

    This is the "full neighbour" step of SDT-GNN. In a partition directory of the result, each part holds its vertices
    with all their neighbours, as mini-batch training needs them. The result also compares edge partitions with vertex
    partitions by halo replication factor. Needs 28 bytes per vertex and at least 4 MB, for any k.

    Parameters
    ----------
    graph : path, array or Graph
        The graph that was partitioned.
    edge_partition : EdgePartition or path
        One part per record.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    VertexPartition
        On a tie the lowest part wins. A loop is one record. Vertices without a record come last, in id order, each to
        the part with the fewest vertices (ties: the lowest). There is no ``cap``: edge partitions bound records, so the
        vertices may be uneven. ``algorithm`` is that of the edge partition with "+home".

    Raises
    ------
    TypeError
        The partition is not an :class:`EdgePartition`.
    GraphFormatError
        The partition belongs to another graph.
    MemoryBudgetError
        Before anything is allocated, with the bytes needed and allowed.

    Notes
    -----
    Source: SDT-GNN, section III-D (ties and vertices without records are our choice).

    Examples
    --------
    >>> import numpy as np, fastpart as fp, pathlib, tempfile
    >>> bow_tie = np.array([[0, 1], [1, 2], [2, 0], [2, 3], [3, 4], [4, 2]])
    >>> by_record = fp.EdgePartition([0, 0, 0, 1, 1, 1], k=2)
    >>> by_vertex = fp.home_parts(bow_tie, by_record)
    >>> by_vertex
    <VertexPartition: user+home, k=2, 5 vertices, loads 2..3>
    >>> by_vertex.assignment
    array([0, 0, 0, 1, 1], dtype=int32)
    >>> fp.evaluate(bow_tie, by_vertex).summary["halo_rf"][0]
    1.6
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "parts"
    >>> stored = by_vertex.save(folder, graph=bow_tie)
    >>> stored.parts[1].vertices
    array([3, 4, 2])
    """
    if isinstance(edge_partition, str | bytes | os.PathLike):
        edge_partition = read_partition(edge_partition, of="edges", name="edge_partition")  # type: ignore[assignment]
    if not isinstance(edge_partition, EdgePartition):
        raise TypeError(f"edge_partition: expected an EdgePartition, got {type(edge_partition).__name__}")
    run = run_options(**options)
    opened = open_graph(graph, **options)
    refuse_other_graph(edge_partition, opened.num_vertices, opened.num_edges, None)
    result = _core.home_parts(opened._source, edge_partition.assignment, edge_partition.k, run)
    opened._remember(result.graph.loops, result.graph.checksum)
    refuse_other_graph(edge_partition, opened.num_vertices, opened.num_edges, result.graph.checksum)
    given = {**edge_partition.parameters, "k": edge_partition.k}
    partition = VertexPartition._of_result(
        f"{edge_partition.algorithm}+home", given, result, result.assignment
    )
    partition.graph = opened
    return partition
