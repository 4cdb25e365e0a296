"""Measures of partitions of typed graphs: one row per type of vertices, and one per relation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .. import _core
from ..core.frames import pl
from ..core.inputs import SPLITS
from ..core.options import RunOptions
from ..graphs.given_splits import of_type
from ..graphs.graph import Graph
from ..graphs.types import Relation, TypedRanges, VertexType
from ..partitions.partition import Partition
from .ratios import Shares, balance_of, ratio

_BLOCK = 1 << 20
"""Items that are counted at a time."""

_TYPE: dict[str, str] = {"type": "String", "vertices": "Int64"}
_RELATION: dict[str, str] = {
    "relation": "String",
    "source": "String",
    "target": "String",
    "edges": "Int64",
}

TYPES: dict[str, dict[str, str]] = {
    "vertices": {**_TYPE, "vertex_balance": "Float64", "halo": "Int64", "halo_rf": "Float64"},
    "edges": {**_TYPE, "replicas": "Int64", "rf": "Float64", "replica_balance": "Float64"},
}
"""The columns of the measures of types and their dtypes, for vertex and edge partitions.

Splits add their balances, as ``train_balance``.
"""

RELATIONS: dict[str, dict[str, str]] = {
    "vertices": {
        **_RELATION,
        "loops": "Int64",
        "edges_cut": "Int64",
        "cut_ratio": "Float64",
        "edge_balance": "Float64",
    },
    "edges": {**_RELATION, "edge_balance": "Float64"},
}
"""The columns of the measures of relations and their dtypes, for vertex and edge partitions."""


def sizes(ranges: Sequence[VertexType | Relation]) -> list[int]:
    """Return the number of vertices of each type, or of records of each relation."""
    return [len(each.range) for each in ranges]


Counts = dict[str, npt.NDArray[np.int64]]
"""Numbers of each part: of ``vertices``, in the ``halo``, and in each split."""


def counts_of_types(
    typed: TypedRanges,
    partition: Partition,
    halos: Sequence[npt.NDArray[np.int64]],
    splits: Mapping[str, npt.NDArray[np.int64]],
    options: RunOptions,
) -> list[Counts]:
    """Return the numbers of each type in each part, given the halo of each type per part. Empty splits are left out."""
    counts: list[Counts] = []
    for each, halo in zip(typed.types, halos, strict=True):
        counts.append({"vertices": _counts(partition, each.range), "halo": halo})
        for name, ids in splits.items():
            if len(own := of_type(ids, each)):
                counts[-1][name] = _core.split_counts(partition.assignment, own, partition.k, options)
    return counts


def columns_of_parts(typed: TypedRanges, counts: Sequence[Counts]) -> list[pl.Series]:
    """Return columns with the numbers of each type, where there are several types: ``vertices_paper`` and so on."""
    if len(typed.types) == 1:
        return []
    return [
        pl.Series(f"{what}_{each.name}", values, pl.Int64)
        for each, of_each in zip(typed.types, counts, strict=True)
        for what, values in of_each.items()
        if each.n
    ]


def types_of_vertices(typed: TypedRanges, counts: Sequence[Counts], shares: Shares | None) -> pl.DataFrame:
    """Return the measures of each type in a vertex partition."""
    splits = [name for name in SPLITS if any(name in of_each for of_each in counts)]
    rows = []
    for each, of_each in zip(typed.types, counts, strict=True):
        halo = int(of_each["halo"].sum())
        rows.append(
            {
                "type": each.name,
                "vertices": each.n,
                "vertex_balance": _balance(of_each["vertices"], shares),
                "halo": halo,
                "halo_rf": ratio(each.n + halo, each.n, empty=1.0),
                **{
                    f"{name}_balance": _balance(of_each[name], shares) if name in of_each else None
                    for name in splits
                },
            }
        )
    return _frame(rows, TYPES["vertices"] | {f"{name}_balance": "Float64" for name in splits})


def relations_of_vertices(
    graph: Graph, typed: TypedRanges, partition: Partition, options: RunOptions
) -> pl.DataFrame:
    """Return the measures of each relation in a vertex partition."""
    k = partition.k
    cuts = _core.relation_cuts(graph._source, partition.assignment, k, sizes(typed.relations), options)
    rows = [
        _described(each)
        | {
            "loops": loops,
            "edges_cut": cut,
            "cut_ratio": ratio(cut, each.m - loops, empty=0.0),
            "edge_balance": ratio(largest * k, 2 * (each.m - loops), empty=1.0),
        }
        for each, (loops, cut, largest) in zip(typed.relations, cuts, strict=True)
    ]
    return _frame(rows, RELATIONS["vertices"])


def types_of_edges(typed: TypedRanges, counts: Sequence[tuple[npt.NDArray[np.int64], int]]) -> pl.DataFrame:
    """Return the measures of each type in an edge partition, given replicas per part and vertices with a record."""
    rows = [
        {
            "type": each.name,
            "vertices": each.n,
            "replicas": int(replicas.sum()),
            "rf": ratio(int(replicas.sum()), touched, empty=1.0),
            "replica_balance": _balance(replicas),
        }
        for each, (replicas, touched) in zip(typed.types, counts, strict=True)
    ]
    return _frame(rows, TYPES["edges"])


def relations_of_edges(typed: TypedRanges, partition: Partition) -> pl.DataFrame:
    """Return the measures of each relation in an edge partition."""
    rows = [
        _described(each) | {"edge_balance": _balance(_counts(partition, each.range))}
        for each in typed.relations
    ]
    return _frame(rows, RELATIONS["edges"])


def _described(relation: Relation) -> dict[str, Any]:
    ends = {"source": relation.source, "target": relation.target}
    return {"relation": relation.name, **ends, "edges": relation.m}


def _counts(partition: Partition, items: range) -> npt.NDArray[np.int64]:
    """Return how many of these vertices, or records, each part has."""
    counts = np.zeros(partition.k, np.int64)
    for start in range(items.start, items.stop, _BLOCK):
        parts = partition.assignment[start : min(start + _BLOCK, items.stop)]
        counts += np.bincount(parts, minlength=partition.k)
    return counts


def _balance(counts: npt.NDArray[np.int64], shares: Shares | None = None) -> float:
    return balance_of(counts, int(counts.sum()), shares)


def _frame(rows: list[dict[str, Any]], schema: dict[str, str]) -> pl.DataFrame:
    """Return a frame of whole columns, without expressions."""
    return pl.DataFrame(
        [pl.Series(name, [row[name] for row in rows], getattr(pl, dtype)) for name, dtype in schema.items()]
    )
