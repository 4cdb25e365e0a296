"""Splits that users give, checked: vertices of a typed graph by their types, and held-out pairs of vertices.

In a graph with types a pair is of a relation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..core.ids import Ids as Tables
from ..core.ids import of_name
from ..core.inputs import splits_of
from ..core.pairs import Keys, among, keys_of, located, undirected_keys
from ..core.parameters import meant
from ..core.vertex_tables import InOrder
from ..errors import ParameterError
from .graph import Graph
from .graph_directory import found_in
from .types import TypedRanges, VertexType

Ids = npt.NDArray[np.int64]

Pairs = npt.NDArray[np.int64]
"""Sources and targets, of shape (pairs, 2). In a graph with types (pairs, 3), with the number of the relation."""


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


@dataclass(frozen=True, eq=False)
class Facts:
    """Which pairs say the same: those with the same ends, in a graph with types those of the same relation.

    Attributes
    ----------
    directed : bool
        Whether a pair of a plain graph and its reverse are listed each by itself.
    merged : numpy.ndarray or None
        Mask of the relations that take both directions for one. None: the graph has no types.
    """

    directed: bool
    merged: npt.NDArray[np.bool_] | None

    @classmethod
    def of(cls, typed: TypedRanges | None, directedness: str) -> Facts:
        """Return those of a graph."""
        merged = None if typed is None else np.array([each.reverse == "merged" for each in typed.relations])
        return cls(directedness == "directed", merged)

    def keys(self, pairs: Pairs) -> Keys:
        """Return one number per pair, equal if one of them gives the other away. It leaves out the relation."""
        if self.merged is None:
            return undirected_keys(pairs[:, 0], pairs[:, 1])
        directed, undirected = (key(pairs[:, 0], pairs[:, 1]) for key in (keys_of, undirected_keys))
        return np.where(self.merged[pairs[:, 2]], undirected, directed)

    def known(self, pairs: Pairs) -> Known:
        """Return what tells whether other pairs are among these."""
        keys = self.keys(pairs)
        distinct = np.unique(keys)
        codes = self._codes(np.searchsorted(distinct, keys), pairs)
        return Known(self, distinct, np.unique(codes))

    def once(self, pairs: Pairs) -> Pairs:
        """Return every pair once, in the order of the first ones."""
        keys = (
            keys_of(pairs[:, 0], pairs[:, 1]) if self.merged is None and self.directed else self.keys(pairs)
        )
        codes = self._codes(np.unique(keys, return_inverse=True)[1], pairs)
        return pairs[np.sort(np.unique(codes, return_index=True)[1])]

    def refuse_common(self, val: Pairs, test: Pairs, where: str = "") -> None:
        """Refuse a pair that is both in val and in test."""
        if len(found := np.flatnonzero(self.known(test).hold(val))):
            raise ParameterError(f"{where}val and test both hold the pair {shown_pair(val[found[0]])}")

    def _codes(self, places: npt.NDArray[np.int64], pairs: Pairs) -> npt.NDArray[np.int64]:
        return places if self.merged is None else places * len(self.merged) + pairs[:, 2]


@dataclass(frozen=True, eq=False)
class Known:
    """Some pairs, to look others up.

    Attributes
    ----------
    facts : Facts
    keys : numpy.ndarray
        uint64: the number of each pair of ends, which ascend.
    codes : numpy.ndarray
        int64: places in ``keys``, in a graph with types together with the relation, which ascend.
    """

    facts: Facts
    keys: Keys
    codes: npt.NDArray[np.int64]

    def hold(self, pairs: Pairs) -> npt.NDArray[np.bool_]:
        """Return which pairs are among these."""
        found, places = located(self.facts.keys(pairs), self.keys)
        found[found] = among(self.facts._codes(places[found], pairs[found]), self.codes)
        return found


def shown_pair(pair: npt.NDArray[np.int64]) -> tuple[int, ...]:
    """Return a pair as errors show it."""
    return tuple(map(int, pair))


def pairs_of(name: str, given: Any, n: int, typed: TypedRanges | None) -> Pairs:
    """Return the checked pairs of a user: ids of shape (pairs, 2), or with types (pairs, 3) or pairs by relation."""
    if typed is not None and isinstance(given, Mapping):
        given = _of_relations(name, given, typed)
    pairs, width = np.asarray(given), 2 if typed is None else 3
    if pairs.ndim != 2 or pairs.shape[1] != width or (pairs.size and pairs.dtype.kind not in "iu"):
        more = "" if typed is None else " with the number of the relation in the third column, or a mapping,"
        raise ParameterError(
            f"{name}: expected pairs of ids,{more} of shape (pairs, {width}), got {pairs.dtype} of shape {pairs.shape}"
        )
    if pairs.size and not 0 <= pairs[:, :2].min() <= pairs[:, :2].max() < n:
        raise ParameterError(f"{name}: ids must be from 0 to {n - 1}")
    pairs = np.ascontiguousarray(pairs, np.int64)
    if typed is not None:
        _refuse_of_other_types(name, pairs, typed)
    places = np.unique(keys_of(pairs[:, 0], pairs[:, 1]), return_inverse=True)[1]
    codes = places if typed is None else places * len(typed.relations) + pairs[:, 2]
    if len(np.unique(codes)) < len(pairs):
        raise ParameterError(f"{name}: a pair occurs more than once")
    return pairs


def _of_relations(name: str, given: Mapping[str, Any], typed: TypedRanges) -> Pairs:
    pieces = [np.empty((0, 3), np.int64)]
    for relation, pairs in given.items():
        if relation not in typed.names:
            raise ParameterError(
                f"{name}: {relation!r} is no relation of the graph{meant(str(relation), typed.names)}"
            )
        ends = np.asarray(pairs)
        if ends.ndim != 2 or ends.shape[1] != 2 or (ends.size and ends.dtype.kind not in "iu"):
            raise ParameterError(
                f"{name}: {relation}: expected pairs of ids, of shape (pairs, 2), got {ends.dtype} of shape "
                f"{ends.shape}"
            )
        pieces.append(
            np.column_stack([ends, np.full(len(ends), typed.names.index(relation))]).astype(np.int64)
        )
    return np.concatenate(pieces)


def _refuse_of_other_types(name: str, pairs: Pairs, typed: TypedRanges) -> None:
    """Refuse relations that there are not, and pairs whose ends are not of the types of their relation."""
    count = len(typed.relations)
    if pairs.size and not 0 <= pairs[:, 2].min() <= pairs[:, 2].max() < count:
        raise ParameterError(
            f"{name}: numbers of relations, in the third column, must be from 0 to {count - 1}"
        )
    for end, what in enumerate(("source", "target")):
        ranges = typed.ranges_of(what)
        wrong = (pairs[:, end] < ranges[pairs[:, 2], 0]) | (pairs[:, end] >= ranges[pairs[:, 2], 1])
        if len(found := np.flatnonzero(wrong)):
            u, v, relation = shown_pair(pairs[found[0]])
            raise ParameterError(
                f"{name}: the pair {(u, v)} is of {typed.names[relation]!r}, but {(u, v)[end]} is no vertex of type "
                f"{getattr(typed.relations[relation], what)!r}"
            )
