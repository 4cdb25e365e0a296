"""The types and relations of a partition directory. A graph without types has one of each, whose names are empty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core import parameters
from ..errors import ParameterError
from .loader_options import EdgeKey as EdgeKey
from .parts import VertexPartData
from .stored_graph import StoredGraph
from .typed_parts import RelationData, TypeData

ONLY_TYPE = ""
"""The name of the type of a graph without types."""

ONLY_RELATION: EdgeKey = (ONLY_TYPE, "", ONLY_TYPE)
"""The name of the relation of a graph without types."""

Fanouts = tuple[int, ...] | list[list[int]]
"""In-edges per vertex in each hop or, over types, in each hop by relation. The core takes both."""


def type_names(partition: StoredGraph) -> list[str]:
    """Return the types of a directory, in their order."""
    types = partition.parts[0].types
    return [ONLY_TYPE] if types is None else [each.name for each in types]


def edge_keys(partition: StoredGraph) -> list[EdgeKey]:
    """Return the relations of a directory, in their order."""
    relations = partition.parts[0].edge_types
    if relations is None:
        return [ONLY_RELATION]
    return [(each.source, each.name, each.target) for each in relations]


def of_type(partition: StoredGraph, name: str) -> Sequence[VertexPartData | TypeData]:
    """Return the vertices of a type in each part."""
    return [rows_of_type(part, name) for part in partition.parts]


def rows_of_type(part: VertexPartData, name: str) -> VertexPartData | TypeData:
    """Return the vertices of a type in a part."""
    return part if part.types is None else part.of_type(name)


def of_relation(partition: StoredGraph, name: str) -> Sequence[VertexPartData | RelationData]:
    """Return the in-edges of a relation in each part."""
    return [part if part.edge_types is None else part.of_relation(name) for part in partition.parts]


def range_of_type(partition: StoredGraph, name: str) -> range:
    """Return the ids of the vertices of a type."""
    types = partition.parts[0].types
    return range(partition._topology.num_vertices) if types is None else _range(types, name)


def _range(types: Sequence[Any], name: str) -> range:
    found: range = next(each.range for each in types if each.name == name)
    return found


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
