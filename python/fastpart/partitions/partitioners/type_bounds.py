"""Bounds on the vertices of types, which ``balance_on=`` names."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.parameters import meant
from ...errors import ParameterError
from ...graphs.graph import Graph

ALL = "types"
"""Stands for all types that have vertices."""

MOST = 7
"""Bounds at most, beside that on the vertices of all types."""

Names = tuple[str | None, ...]
"""The type of each bound. None: an array of weights."""


def names_types(given: Any) -> bool:
    """Return whether a bound is given by the name of a type."""
    return isinstance(given, str) or (
        isinstance(given, list | tuple) and any(isinstance(each, str) for each in given)
    )


def resolved(name: str, given: Any, graph: Graph, several: bool) -> tuple[Any, Names]:
    """Return ``balance_on`` with an array in the place of each name of a type, and the names.

    ``several``: whether the algorithm ``name`` takes more than one bound.
    """
    if graph.types is None:
        named = repr(given) if isinstance(given, str) else "a name"
        raise ParameterError(
            f"balance_on: {named} stands for a type of vertices, but the graph has no types. Pass an array of weights"
        )
    if given == ALL:
        given = [each.name for each in graph.types if each.n]
        if several and len(given) > MOST:
            raise ParameterError(
                f"balance_on: the graph has {len(given)} types with vertices, but there can be {MOST} bounds. Name the "
                f"types to bound, as in balance_on=[{given[0]!r}, {given[1]!r}]"
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


def _mask(graph: Graph, name: str) -> npt.NDArray[np.bool_]:
    """Return which vertices are of a type."""
    types = {each.name: each.range for each in graph.types or ()}
    if name not in types:
        raise ParameterError(
            f"balance_on: the graph has no type {name!r}. The types are {', '.join(types)}{meant(name, types)}"
        )
    mask = np.zeros(graph.num_vertices, bool)
    mask[types[name].start : types[name].stop] = True
    return mask
