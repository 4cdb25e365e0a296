"""Bounds on the vertices of types, and on their training vertices, which ``balance_on=`` names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ... import _core
from ...core.notes import log
from ...core.parameters import meant
from ...errors import ParameterError, arg
from ...graphs.given_splits import training_vertices
from ...graphs.graph import Graph

ALL = "types"
"""Stands for all types that have vertices."""

TRAIN = "train"
"""Stands for the training vertices of all types that have any."""

_TRAINING = ":train"
"""What follows the name of a type in that of a bound on its training vertices."""

MOST = 7
"""Bounds at most, beside that on the vertices of all types."""

Names = tuple[str | None, ...]
"""What each bound is on: a type, or its training vertices. None: an array of weights."""


def names_types(given: Any) -> bool:
    """Return whether a bound is given by the name of a type."""
    return isinstance(given, str) or (
        isinstance(given, list | tuple) and any(isinstance(each, str) for each in given)
    )


def training_of(name: str) -> str:
    """Return the name of a bound on the training vertices of a type."""
    return name + _TRAINING


def is_none(given: Any) -> bool:
    """Return whether the caller wants no bounds, which an empty list says."""
    return isinstance(given, list | tuple) and not given


def resolved(name: str, given: Any, graph: Graph, several: bool) -> tuple[Any, Names]:
    """Return ``balance_on`` with an array in the place of each name of a type, and the names.

    ``several``: whether the algorithm ``name`` takes more than one bound.
    """
    if graph.types is None:
        named = repr(given) if isinstance(given, str) else "a name"
        raise ParameterError(
            f"balance_on: {named} stands for a type of vertices, but the graph has no types. Pass an array of weights"
        )
    if isinstance(given, str) and given in (ALL, TRAIN):
        given = _all_types(graph) if given == ALL else _all_trained(graph)
        if several and len(given) > MOST:
            raise ParameterError(
                f"balance_on: the graph has {len(given)} types with vertices, but there can be {MOST} bounds. Name the "
                f"types to bound, as in {arg(f'balance_on=[{given[0]!r}, {given[1]!r}]')}"
            )
    if isinstance(given, str):
        return _mask(graph, given), (given,)
    if not several:
        if len(given) != 1:
            raise ParameterError(
                f"balance_on: {name} takes one bound, not {len(given)}. Name one type, or use multilevel"
            )
        return _mask(graph, given[0]), (given[0],)
    arrays = [_mask(graph, each) if isinstance(each, str) else np.asarray(each) for each in given]
    return arrays, tuple(each if isinstance(each, str) else None for each in given)


def by_default(
    algorithm: _core.Algorithm, values: Mapping[str, Any], graph: Graph
) -> tuple[Any, Names] | None:
    """Return the bounds where the caller gives none: on training vertices of types, if the graph directory has any.

    The log says what is bounded, and what is not. ``values`` are the parameters of the algorithm.
    """
    sizes = {name: len(ids) for name, ids in training_vertices(graph).items()}
    if not sizes:
        return None
    kinds = {field.name: field.kind for field in algorithm.fields}
    names = sorted(sizes, key=lambda name: -sizes[name])[: _most(kinds, values)]
    left = [name for name in sizes if name not in names]
    if names:
        log.info(
            "balance_on: bounds the training vertices of %s in each part, since the graph directory has a training "
            f"split. {arg('balance_on', [])} leaves that out",
            _listed(names),
        )
    if left and "splits" not in kinds:
        log.info("%s does not bound the training vertices of %s", algorithm.name, _listed(left))
    if not names:
        return None
    masks = [_mask(graph, training_of(name)).astype(np.uint32) for name in names]
    return masks if len(masks) > 1 else masks[0], tuple(training_of(name) for name in names)


def _most(kinds: Mapping[str, str], values: Mapping[str, Any]) -> int:
    """Return how many bounds on weights an algorithm takes, with these values of its other parameters."""
    match kinds.get("balance_on"):
        case "several_weights":
            return MOST - (values.get("volume_balance") is not None)
        case "weights" if values.get("strict", True):
            return 1
    return 0


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


def _all_types(graph: Graph) -> list[str]:
    return [each.name for each in graph.types or () if each.n]


def _all_trained(graph: Graph) -> list[str]:
    trained = training_vertices(graph)
    if not trained:
        raise ParameterError(
            f"balance_on: {TRAIN!r} stands for the training vertices of a graph directory, and there are none. Pass an "
            "array of weights"
        )
    return [training_of(name) for name in trained]


def _mask(graph: Graph, name: str) -> npt.NDArray[np.bool_]:
    """Return which vertices are of a type, or are its training vertices."""
    types = {each.name: each.range for each in graph.types or ()}
    mask = np.zeros(graph.num_vertices, bool)
    of, is_trained = name.removesuffix(_TRAINING), name not in types and name.endswith(_TRAINING)
    if (of if is_trained else name) not in types:
        raise ParameterError(
            f"balance_on: the graph has no type {name!r}. The types are {', '.join(types)}{meant(name, types)}"
        )
    if not is_trained:
        mask[types[name].start : types[name].stop] = True
        return mask
    trained = training_vertices(graph)
    if of not in trained:
        raise ParameterError(
            f"balance_on: {name!r} stands for training vertices, but the graph directory has none of type {of!r}. Pass "
            "an array of weights"
        )
    mask[trained[of]] = True
    return mask
