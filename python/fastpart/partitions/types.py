"""The types and relations of a partition directory. A graph without types has one of each, whose names are empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core import parameters
from ..errors import ParameterError
from ..graphs.types import EdgeType, VertexType
from .loader_options import EdgeKey as EdgeKey
from .part_files import Ids
from .part_rows import RelationData, TypeData
from .parts import VertexPartData
from .stored_graph import StoredGraph

ONLY_TYPE = ""
"""The name of the type of a graph without types."""

ONLY_RELATION: EdgeKey = (ONLY_TYPE, "", ONLY_TYPE)
"""The name of the relation of a graph without types."""

Fanouts = tuple[int, ...] | list[list[int]]
"""In-edges per vertex in each hop or, over types, in each hop by relation. The core takes both."""


def vertex_types(partition: StoredGraph) -> tuple[VertexType, ...]:
    """Return the types of a directory, in their order."""
    return partition.parts[0]._ranges.types  # type: ignore[no-any-return]


def edge_types(partition: StoredGraph) -> tuple[EdgeType, ...]:
    """Return the relations of a directory, and then the reverse ones that are relations of their own."""
    return partition.parts[0]._ranges.edge_types  # type: ignore[no-any-return]


def type_names(partition: StoredGraph) -> list[str]:
    """Return the names of the types of a directory, in their order."""
    return [each.name for each in vertex_types(partition)]


def key_of(of: EdgeType) -> EdgeKey:
    """Return the name of a relation between those of its ends."""
    return of.source, of.name, of.target


def edge_keys(partition: StoredGraph) -> list[EdgeKey]:
    """Return the names of the relations of a directory, in their order."""
    return list(map(key_of, edge_types(partition)))


def of_type(partition: StoredGraph, name: str) -> Sequence[TypeData]:
    """Return the vertices of a type in each part."""
    return [rows_of_type(part, name) for part in partition.parts]


def rows_of_type(part: VertexPartData, name: str) -> TypeData:
    """Return the vertices of a type in a part."""
    return next(rows for rows in part._by_type if rows.type.name == name)


def of_relation(partition: StoredGraph, name: str) -> Sequence[RelationData]:
    """Return the in-edges of a relation in each part."""
    return [rows_of_relation(part, name) for part in partition.parts]


def rows_of_relation(part: VertexPartData, name: str) -> RelationData:
    """Return the in-edges of a relation in a part."""
    return next(rows for rows in part._by_relation if rows.type.name == name)


def in_edges_of(part: VertexPartData, of: RelationData) -> tuple[Ids, Ids, Ids]:
    """Return the in-edges of a relation that lead to inner vertices of a part. Ids count within the types of the ends.

    Returns
    -------
    targets, counts, sources : numpy.ndarray
        The inner vertices of the type of the targets, the number of in-edges of each, and their sources.
    """
    targets = rows_of_type(part, of.type.target)
    start, stop = targets.spans[0]
    counts = np.diff(of.before(part.indptr[start : stop + 1]))
    source = next(each for each in part._ranges.types if each.name == of.type.source)
    sources = part.vertices[part.indices[of.of_inner]] - source.first
    if counts.sum() != len(sources) or (len(sources) and not 0 <= sources.min() <= sources.max() < source.n):
        raise part._damaged("relations", "edges whose ends are of the types of their relations")
    return targets.inner - targets.type.first, counts, sources


def range_of_type(partition: StoredGraph, name: str) -> range:
    """Return the ids of the vertices of a type."""
    return next(each.range for each in vertex_types(partition) if each.name == name)


def entry_of_type(partition: StoredGraph, name: str) -> Mapping[str, Any]:
    """Return what the manifest says of the rows of a type."""
    manifest: Mapping[str, Any] = partition.parts._manifest
    if "types" not in manifest:
        return manifest
    entry: Mapping[str, Any] = next(each for each in manifest["types"] if each["name"] == name)
    return entry


def types_with(split: str, partition: StoredGraph) -> list[str]:
    """Return the types that have a split."""
    names = type_names(partition)
    return [name for name in names if split in entry_of_type(partition, name).get("splits", [])]


def fanouts_of(fanouts: Any, partition: StoredGraph) -> Fanouts:
    """Return the fanouts of each hop, checked. Over types, there is one for each relation."""
    if not partition.is_typed:
        return parameters.fanouts_of(fanouts)
    return relation_fanouts(fanouts, edge_keys(partition))


def relation_fanouts(fanouts: Any, keys: Sequence[EdgeKey]) -> list[list[int]]:
    """Return the fanout of each relation in each hop, hop by hop.

    Raises
    ------
    ParameterError
        An unknown relation, or one with another number of hops.
    """
    if not isinstance(fanouts, Mapping):
        return [[fanout] * len(keys) for fanout in parameters.fanouts_of(fanouts)]
    places = {key: place for place, key in enumerate(keys)} | {
        key[1]: place for place, key in enumerate(keys)
    }
    given: dict[int, tuple[int, ...]] = {}
    for name, of_relation in fanouts.items():
        place = places.get(tuple(name) if isinstance(name, list) else name)
        if place is None:
            raise ParameterError(
                f"fanouts: unknown relation {name!r}. The relations are {', '.join(map(repr, keys))}"
            )
        if place in given:
            raise ParameterError(f"fanouts: {keys[place]!r} is named twice")
        given[place] = parameters.fanouts_of(of_relation)
    if len({len(each) for each in given.values()}) != 1:
        raise ParameterError(
            "fanouts: expected the same number of hops for each relation, at least for one relation"
        )
    hops = len(next(iter(given.values())))
    none = (0,) * hops
    return [[given.get(place, none)[hop] for place in range(len(keys))] for hop in range(hops)]
