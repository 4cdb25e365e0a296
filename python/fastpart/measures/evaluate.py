"""Measures of partitions. Rust counts, Polars holds the tables.

The tables are built from whole columns, without expressions. Expressions run on the thread pool of Polars, which hangs
in a forked child.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.frames import pl
from ..core.inputs import labels_of
from ..core.notes import log
from ..core.options import Options, RunOptions, run_options, with_options
from ..core.parameters import StrPath, parts
from ..core.protocols import Assignment
from ..errors import ParameterError
from ..graphs.given_splits import typed_splits
from ..graphs.graph import Graph, weighted_by_relation
from ..graphs.opening import open_graph
from ..machines.engine import Engine
from ..machines.partitioning import Place
from ..machines.starting import at_place
from ..partitions.partition import EdgePartition, Partition, partition_given, refuse_other_graph
from ..partitions.results import Cap, Evaluation, without_nan
from . import by_type
from .ratios import balance_of, ratio, shares_of
from .vertex_counts import count

DENSE_PARTS = 4096
"""Up to this many parts the cut matrix is dense."""


@with_options
def evaluate(
    graph: Any,
    partition: Partition | StrPath | npt.ArrayLike,
    labels: Any = None,
    splits: Any = None,
    *,
    k: int | None = None,
    split: int | None = None,
    relation_weights: Mapping[str, float] | None = None,
    cluster: str | Engine | None = None,
    shared: StrPath | None = None,
    **options: Unpack[Options],
) -> Evaluation:
    """Measure a partition of a graph.

    Parameters
    ----------
    graph : path, array or Graph
        The graph, as :func:`open_graph` accepts it.
    partition : VertexPartition, EdgePartition, Clustering, path or array of integers
        The partition, a path that :func:`open_partition` accepts, or a table with ids and parts. An array, or a
        clustering, holds one part per vertex.
    labels : array, or path of a .npy or a table, optional
        Integer class of each vertex, length n, -1 = unlabelled, or 0 and 1 of shape (n, classes). Adds ``label_skew``.
        Targets of a regression have none. A table (``.csv``, ``.tsv``, ``.parquet``, a frame) has columns for the
        vertex, by its id if the graph has ids, and the label. A single column has one row per vertex.
    splits : mapping, or path of a .npz or a table, optional
        ``train``, ``val``, ``test``: a series of ids, numbers of vertices, or a bool mask of length n. Adds their
        balances. A table has columns for the vertex and its split. Those of a typed graph may be given by type, with
        ids or numbers within the type.
        Default: those in the graph directory of a typed graph.
    k : int, optional
        Number of parts of an array or a file that does not say it. Default: the largest part + 1, with a note.
    split : int, optional
        Which row of ``train_masks``, ``val_masks``, ``test_masks`` of shape (s, n) to use.
    relation_weights : mapping of str to float, optional
        Factors by relation of a typed graph, as ``{"cites": 2.0}``, for the weighted cut. They multiply the weights of
        the records, which are 1 if there are none. A relation that is not named has the factor 1.
    cluster : str, optional
        The Ray cluster that counts the cut, the halos and the components of a vertex partition, as for
        :func:`partition`. Labels, splits, weights and relations are counted by this machine. The measures are the same.
    shared : path, optional
        A folder that all machines of the cluster see. Needed with ``cluster``.
    threads, tmp_dir, progress, memory_limit
        As in :class:`fastpart.Options`.

    Returns
    -------
    Evaluation
        ``.parts``: ``part, vertices, edges_internal, edges_cut, volume, halo, components, load, cap`` and, if given,
        ``train, val, test, label_skew`` (for edge partitions ``part, edges, replicas, load, cap``). ``.summary``: ``of,
        algorithm, k, n, m, loops`` and ``cut_ratio, vertex_balance, edge_balance, halo_rf, components`` (``rf,
        edge_balance, replica_balance``), then ``train_balance, val_balance, test_balance, label_skew``. A partition
        with ``balance_on`` adds ``weight_load, weight_cap`` to ``.parts`` and ``weight_balance`` to ``.summary``. If it
        was a list of arrays, the names end with the index, as ``weight_load_0``. One with a bound on volume, the sum of
        degree + 1, adds ``volume_load, volume_cap`` and ``volume_balance``. If the records are weighted, vertex
        partitions have ``weight_internal, weight_cut`` in ``.parts``, and ``weighted_cut, weighted_cut_ratio`` in
        ``.summary``, in the unit of the given weights.

        A typed graph adds ``.types`` and ``.relations``, with the sums over all parts. ``.types``: ``type, vertices,
        vertex_balance, halo, halo_rf`` and, of splits, ``train_balance, val_balance, test_balance``, null where a type
        is in none (``type, vertices, replicas, rf, replica_balance``). If it has several types, ``.parts`` gets the
        vertices, the halo and the splits of each: ``vertices_paper, halo_paper, train_paper``. ``.relations``:
        ``relation, source, target, edges, loops, edges_cut, cut_ratio, edge_balance`` (``relation, source, target,
        edges, edge_balance``). ``.summary`` of a vertex partition gets ``type_balance``, the largest
        ``vertex_balance`` of a type.

    Raises
    ------
    GraphFormatError
        The partition belongs to another graph.
    ParameterError
        Labels or splits do not fit the graph.

    Notes
    -----
    For parts V_i with volume vol(V_i), the sum of their degrees:

    - ``cut_ratio`` = cut records / non-loop records
    - ``weighted_cut`` = weight of the cut records, ``weighted_cut_ratio`` = its share of that of the non-loop records
    - ``vertex_balance`` = ``max |V_i| / (n/k)``
    - ``edge_balance`` = ``max vol(V_i) / (vol(V)/k)``
    - ``halo_rf`` = ``sum of |V_i and its neighbours| / n``
    - ``components`` = sum over the parts of their connected components, by the edges inside each. A part with more than
      one falls apart
    - ``train_balance`` = the largest share of the training vertices in one part / (1/k)
    - ``label_skew`` = the largest total-variation distance between the labels of a part and of the graph. If vertices
      have several labels, each occurrence counts.
    - ``rf`` of edge partitions = replicas / vertices that have a record

    A partition that was made with ``sizes`` has balances relative to the share of each part: ``vertex_balance`` is then
    ``max |V_i| / (n s_i / sum of s)``, and the others likewise.

    An empty graph has cut 0 and factors 1.0. The measures of a type are those of its vertices, whatever they are
    connected to. The measures of a relation are those of its records: its ``edge_balance`` is that of their ends.

    Examples
    --------
    >>> import numpy as np, fastpart as fp
    >>> path_of_four = np.array([[0, 1], [1, 2], [2, 3]])
    >>> fp.evaluate(path_of_four, [0, 0, 1, 1]).summary["halo_rf"][0]
    1.5
    """
    run = run_options(**options)
    opened = open_graph(graph, **options)
    known = isinstance(partition, Assignment)
    partition = partition_given(partition, opened, None if k is None else parts(k))
    if k not in (None, partition.k):
        raise ParameterError(f"k: {k}, but the partition has {partition.k} parts")
    if k is None and not known and partition.checksum is None:
        log.info(
            "k: %d, the largest part + 1. Empty parts behind it do not count, unless k says so", partition.k
        )
    refuse_other_graph(partition, opened.num_vertices, opened.num_edges, None)
    if opened._typed is not None:
        opened.identify(run)  # compares the ends of the records with their types, once
    if isinstance(partition, EdgePartition):
        if labels is not None or splits is not None:
            raise ParameterError("labels, splits: an edge partition has no measures of them. Leave them out")
        if relation_weights is not None:
            raise ParameterError(
                "relation_weights: an edge partition has no measures of weights. Leave them out"
            )
        if cluster is not None:
            raise ParameterError("cluster: an edge partition is measured by one machine. Leave it out")
        return _evaluate_edge(opened, partition, run)
    members = typed_splits(opened, splits, split)
    classes = None if labels is None else labels_of(labels, opened.num_vertices, opened._id_tables)
    weighted = weighted_by_relation(opened, relation_weights, run)
    with at_place(cluster, shared) as place:
        return _evaluate_vertex(weighted, partition, classes, members, run, place)


def _evaluate_vertex(
    graph: Graph,
    partition: Partition,
    labels: npt.NDArray[Any] | None,
    splits: dict[str, npt.NDArray[np.int64]],
    options: RunOptions,
    place: Place | None,
) -> Evaluation:
    n, m, k, typed = graph.num_vertices, graph.num_edges, partition.k, graph._typed
    counts = count(graph, partition.assignment, k, _type_sizes(graph) or [n], options, place)
    graph._remember(counts.loops, counts.checksum)
    refuse_other_graph(partition, n, m, counts.checksum)
    parts = pl.DataFrame(
        {
            "part": np.arange(k, dtype=np.int64),
            "vertices": partition.loads,
            "edges_internal": counts.internal,
            "edges_cut": counts.cut,
            "volume": counts.volume,
            "halo": counts.halo,
            "components": counts.components,
            "load": partition.loads,
            "cap": _cap(partition.cap, k),
        }
    )
    shares = shares_of(partition.parameters, k)
    loops = counts.loops
    summary = _header(partition, n, m, loops) | {
        "cut_ratio": ratio(int(parts["edges_cut"].sum()) / 2, m - loops, empty=0.0),
        "vertex_balance": balance_of(parts["vertices"], n, shares),
        "edge_balance": balance_of(parts["volume"], 2 * (m - loops), shares),
        "halo_rf": ratio(n + int(parts["halo"].sum()), n, empty=1.0),
        "components": int(parts["components"].sum()),
    }
    if graph._weights is not None:
        columns, cut_weight = _weighted_cut(graph, partition, options)
        parts, summary = parts.with_columns(columns), summary | cut_weight
    bounds: list[tuple[str, npt.NDArray[np.int64], Cap | None]]
    bounds = [(f"weight_{{}}{index}", loads, cap) for index, loads, cap in partition._weights()]
    if partition.volume_loads is not None:
        bounds.append(
            ("volume_{}", partition.volume_loads, 0 if partition.volume_cap is None else partition.volume_cap)
        )
    for name, loads, cap in bounds:
        columns = [pl.Series(name.format("load"), loads), _cap(cap, k).alias(name.format("cap"))]
        parts = parts.with_columns(columns)
        summary[name.format("balance")] = balance_of(loads, int(loads.sum()), shares)
    for name, ids in splits.items():
        members = pl.Series(name, _core.split_counts(partition.assignment, ids, k, options))
        parts = parts.with_columns(members)
        summary[f"{name}_balance"] = balance_of(members, len(ids), shares)
    if labels is not None and labels.dtype.kind != "f":  # targets of a regression are no classes
        skew = without_nan(_label_skew(partition.assignment, labels, k, options))
        parts = parts.with_columns(pl.Series("label_skew", skew, pl.Float64))
        summary["label_skew"] = max((value for value in skew if value is not None), default=0.0)
    types = relations = None
    if typed is not None:
        of_types = by_type.counts_of_types(typed, partition, counts.halo_of_types, splits, options)
        parts = parts.with_columns(by_type.columns_of_parts(typed, of_types))
        types = by_type.types_of_vertices(typed, of_types, shares)
        relations = by_type.relations_of_vertices(graph, typed, partition, options)
        summary["type_balance"] = max(types["vertex_balance"].to_list())
    matrix = counts.matrix

    def cut_matrix() -> npt.NDArray[np.int64] | pl.DataFrame:
        return _sparse_cut_matrix(graph, partition, options) if matrix is None else matrix

    return Evaluation(parts, pl.DataFrame([summary]), cut_matrix, types, relations)


def _weighted_cut(
    graph: Graph, partition: Partition, options: RunOptions
) -> tuple[list[pl.Series], dict[str, float]]:
    """Return the columns and the measures of the weights of the records."""
    weights = graph._weights
    sums = _core.weighted_cut(graph._source, partition.assignment, partition.k, options)
    if weights is None or sums is None:
        return [], {}
    dtype = pl.Int64 if weights.scale == 1 else pl.Float64
    internal, cut = (list(map(int, column)) for column in sums)
    columns = [
        pl.Series(name, [weights.in_units(each) for each in column], dtype)
        for name, column in (("weight_internal", internal), ("weight_cut", cut))
    ]
    crossing = sum(cut) // 2
    return columns, {
        "weighted_cut": weights.in_units(crossing),
        "weighted_cut_ratio": ratio(crossing, sum(internal) + crossing, empty=0.0),
    }


def _label_skew(
    assignment: npt.NDArray[np.int32], labels: npt.NDArray[Any], k: int, options: RunOptions
) -> list[float]:
    if labels.ndim == 2:  # one entry for each occurrence of a label
        vertices, classes = np.nonzero(labels)
        assignment, labels = assignment[vertices], np.ascontiguousarray(classes)
    skew: list[float] = _core.label_skew(assignment, labels, k, options).tolist()
    return skew


def _sparse_cut_matrix(graph: Graph, partition: Partition, options: RunOptions) -> pl.DataFrame:
    rows, columns, records = _core.sparse_cut_matrix(
        graph._source, partition.assignment, partition.k, options
    )
    return pl.DataFrame({"part": rows, "other": columns, "records": records})


def _evaluate_edge(graph: Graph, partition: Partition, options: RunOptions) -> Evaluation:
    n, m, k, typed = graph.num_vertices, graph.num_edges, partition.k, graph._typed
    counts = _core.count_edge_partition(graph._source, partition.assignment, k, options, _type_sizes(graph))
    graph._remember(counts.graph.loops, counts.graph.checksum)
    refuse_other_graph(partition, n, m, counts.graph.checksum)
    parts = pl.DataFrame(
        {
            "part": np.arange(k, dtype=np.int64),
            "edges": partition.loads,
            "replicas": counts.replicas,
            "load": partition.loads,
            "cap": _cap(partition.cap, k),
        }
    )
    replicas = int(parts["replicas"].sum())
    summary = _header(partition, n, m, counts.graph.loops) | {
        "rf": ratio(replicas, counts.touched, empty=1.0),
        "edge_balance": balance_of(parts["edges"], m, None),
        "replica_balance": balance_of(parts["replicas"], replicas, None),
    }
    if typed is None:
        return Evaluation(parts, pl.DataFrame([summary]))
    return Evaluation(
        parts,
        pl.DataFrame([summary]),
        types=by_type.types_of_edges(typed, counts.types),
        relations=by_type.relations_of_edges(typed, partition),
    )


def _type_sizes(graph: Graph) -> list[int] | None:
    return None if graph._typed is None else by_type.sizes(graph._typed.types)


def _header(partition: Partition, n: int, m: int, loops: int) -> dict[str, Any]:
    return {
        "of": partition.of,
        "algorithm": partition.algorithm.encode(errors="replace").decode(),  # Polars holds valid UTF-8 only
        "k": partition.k,
        "n": n,
        "m": m,
        "loops": loops,
    }


def _cap(cap: Cap | None, k: int) -> pl.Series:
    """Return the column of a cap: the same for all parts, or one of each."""
    return pl.Series("cap", cap if isinstance(cap, np.ndarray) else [cap] * k, pl.Int64)
