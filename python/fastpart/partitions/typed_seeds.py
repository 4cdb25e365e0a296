"""The seeds of a typed graph, which are of one type, and the fanouts of its relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core import parameters
from ..errors import ParameterError, arg
from .loader_options import EdgeKey as EdgeKey
from .partition import VertexPartition
from .seeds import Seeds, vertex_ids
from .typed_parts import TypeData

RowIds = npt.NDArray[np.uint32]


def edge_keys(partition: VertexPartition) -> list[EdgeKey]:
    """Return the relations of a typed graph, in their order."""
    return [(each.source, each.name, each.target) for each in partition.parts[0].edge_types or ()]


def type_names(partition: VertexPartition) -> list[str]:
    """Return the types of a typed graph, in their order."""
    return [each.name for each in partition.parts[0].types or ()]


def of_type(partition: VertexPartition, name: str) -> list[TypeData]:
    """Return what each part holds of a type."""
    return [part.of_type(name) for part in partition.parts]


def relation_fanouts(fanouts: Any, keys: Sequence[EdgeKey]) -> list[list[int]]:
    """Return the fanout of each relation in each hop, hop by hop.

    Raises
    ------
    ParameterError
        A relation that is none, or that has another number of hops than the others.
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
            raise ParameterError(f"fanouts: {name!r} is none of the relations {', '.join(map(repr, keys))}")
        if place in given:
            raise ParameterError(f"fanouts: {keys[place]!r} is named twice")
        given[place] = parameters.fanouts_of(of_relation)
    if len({len(each) for each in given.values()}) != 1:
        raise ParameterError("fanouts: expected as many hops for each relation, at least for one relation")
    hops = len(next(iter(given.values())))
    none = (0,) * hops
    return [[given.get(place, none)[hop] for place in range(len(keys))] for hop in range(hops)]


def typed_seeds(
    vertices: Any, partition: VertexPartition, name: str | None, repeated: bool = False
) -> tuple[str, Seeds]:
    """Return the type of the seeds, and the labelled vertices of a split, or given vertices, as :func:`.seeds_of`."""
    names, topology = type_names(partition), partition._topology
    if name is not None and name not in names:
        raise ParameterError(f"input: {name!r} is none of the types {', '.join(names)}")
    if isinstance(vertices, str):
        name = name or _type_with(vertices, partition)
        pieces = [
            topology.starts[place] + part.first_inner + np.flatnonzero(_mask(part, vertices))
            for place, part in enumerate(of_type(partition, name))
        ]
        rows = np.concatenate(pieces).astype(np.uint32)
    else:
        ids = vertex_ids(vertices, topology.num_vertices, "'train', 'val', 'test', ", repeated)
        rows = topology.rows_of(ids)
        name = _type_of(rows, partition, name)
    seeds = _of_rows(rows, partition, name)
    if not isinstance(vertices, str):
        return name, seeds
    order = np.argsort(seeds.ids)
    labels = None if seeds.labels is None else seeds.labels[order]
    return name, Seeds(seeds.ids[order], seeds.rows[order], labels)


def types_with(split: str, partition: VertexPartition) -> list[str]:
    """Return the types that have a split."""
    types = (partition.manifest or {})["types"]
    return [str(each["name"]) for each in types if split in each.get("splits", [])]


def _type_with(split: str, partition: VertexPartition) -> str:
    found = types_with(split, partition)
    if len(found) == 1:
        return found[0]
    if found:
        raise ParameterError(
            f"input: {', '.join(found)} have a split {split!r}. Name one of them with {arg('input')}"
        )
    raise ParameterError(
        f"vertices: no type has a split {split!r}. Save the partition with {arg('splits')}, as "
        f"{{{type_names(partition)[0]!r}: "
        "...}, or pass ids"
    )


def _mask(part: TypeData, split: str) -> Any:
    if split not in part._manifest.get("splits", []):
        raise ParameterError(
            f"vertices: {part.type.name!r} has no split {split!r}. Save the partition with {arg('splits')}, or pass ids"
        )
    return part.labelled(split)


def _type_of(rows: RowIds, partition: VertexPartition, name: str | None) -> str:
    """Return the one type of some rows."""
    names = type_names(partition)
    found: list[int] = np.unique(partition._types.locate(rows)[0]).tolist()
    there = [names[number] for number in found]
    if name is None and len(there) == 1:
        return there[0]
    if name is None or set(there) - {name}:
        expected = "one type" if name is None else repr(name)
        raise ParameterError(
            f"vertices: expected ids of {expected}, got those of {', '.join(there) or 'none'}"
        )
    return name


def _of_rows(rows: RowIds, partition: VertexPartition, name: str) -> Seeds:
    ids, labels = partition._topology.ids_of(rows), None
    number = type_names(partition).index(name)
    of_type_rows, starts = partition._types.locate(rows)[1], partition._types.starts[number]
    for part, (first, end) in zip(of_type(partition, name), pairwise(starts), strict=True):
        if part.labels is None:
            continue
        if labels is None:
            labels = np.empty((len(rows), *part.labels.shape[1:]), part.labels.dtype)
        those = np.flatnonzero((of_type_rows >= first) & (of_type_rows < end))
        labels[those] = part.labels[of_type_rows[those] - first]
    return Seeds(ids, rows, labels)
