"""Training, validation and test vertices of a typed graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.ids import Ids as Tables
from ..core.ids import of_name
from ..core.inputs import splits_of
from ..core.parameters import meant
from ..core.vertex_tables import InOrder
from ..errors import ParameterError
from .graph import Graph
from .graph_directory import found_in
from .types import TypedRanges, VertexType

Ids = npt.NDArray[np.int64]


def typed_splits(graph: Graph, given: Any = None, split: int | None = None) -> dict[str, Ids]:
    """Return the vertices of all types in each split, ascending.

    ``given`` are splits by type, whose ids count within the type, or splits of all vertices. None: those in the graph
    directory. A graph without types, or without a directory, then has none.

    Raises
    ------
    ParameterError, TypeError
        A type that the graph does not have, or splits that do not fit their type.
    """
    typed = graph._typed
    if given is not None:
        return splits_by_type(given, typed, graph.num_vertices, split, graph._id_tables)
    if typed is None or graph.directory is None:
        return {}
    found = found_in(graph.directory, typed).get("splits", {})
    return _of_all_types({name: InOrder(file) for name, file in found.items()}, typed, split, ())


def splits_by_type(
    given: Any, typed: TypedRanges | None, n: int, split: int | None, ids: Tables = ()
) -> dict[str, Ids]:
    """Return the vertices of all types in each split that is given, by type or for all ``n`` vertices.

    ``ids`` are those that the vertices had in tables.
    """
    if typed is None or not _are_by_type(given, typed):
        return splits_of(given, n, split, ids)
    return _of_all_types(given, typed, split, ids)


def of_type(ids: Ids, of: VertexType) -> Ids:
    """Return those of the vertices that are of a type."""
    return ids[(ids >= of.range.start) & (ids < of.range.stop)]


def training_vertices(graph: Graph) -> dict[str, Ids]:
    """Return the training vertices of each type that has any, as the graph directory has them."""
    train = typed_splits(graph).get("train")
    if train is None:
        return {}
    by_type = ((each.name, of_type(train, each)) for each in graph.types or ())
    return {name: ids for name, ids in by_type if len(ids)}


def _are_by_type(given: Any, typed: TypedRanges) -> bool:
    return isinstance(given, Mapping) and any(each.name in given for each in typed.types)


def _of_all_types(
    given: Mapping[Any, Any], typed: TypedRanges, split: int | None, tables: Tables
) -> dict[str, Ids]:
    names = [each.name for each in typed.types]
    for key in given:
        if key not in names:
            raise ParameterError(
                f"splits: {key!r} is no type of the graph. The types are {', '.join(names)}{meant(str(key), names)}"
            )
    found: dict[str, list[Ids]] = {}
    for name, ids in _each(given, typed, split, tables):
        found.setdefault(name, []).append(ids)
    return {name: np.sort(np.concatenate(ids)) for name, ids in found.items()}


def _each(
    given: Mapping[Any, Any], typed: TypedRanges, split: int | None, tables: Tables
) -> Iterator[tuple[str, Ids]]:
    """Yield each split of each type, as vertices of the graph."""
    for each in typed.types:
        if each.name not in given:
            continue
        about = f"type {each.name!r}: "
        try:
            splits = splits_of(given[each.name], each.n, split, of_name(tables, each.name), about)
        except (ParameterError, TypeError) as error:
            error.args = (f"{about}{error.args[0]}", *error.args[1:])
            raise
        for name, ids in splits.items():
            yield name, ids + each.first
