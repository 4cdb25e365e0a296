"""Weights of records by relation: one number for all records of a relation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.options import RunOptions
from ..core.parameters import meant, number
from ..errors import MemoryBudgetError, ParameterError, arg
from .graph import Graph
from .types import Relation

_BLOCK = 1 << 18
"""Weights per step."""

_LARGEST = 2**32 - 1

_BITS = 31
"""Bits of the largest weight, if factors are no whole numbers."""

_FINEST = 16
"""Factors are made whole by multiplying them with a power of two up to 2**16. The weights stay small then."""


def checked_relation_weights(relations: Sequence[Relation] | None, given: Any) -> dict[str, float] | None:
    """Return the factors of the named relations. None stays None.

    Raises
    ------
    ParameterError, TypeError
        The graph has no relations, or none of that name, or a factor is below 0.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise TypeError(
            f'relation_weights: expected numbers by relation, as {{"cites": 2.0}}, got {type(given).__name__}'
        )
    if relations is None:
        raise ParameterError(
            f"relation_weights: the graph has no relations. Open it with {arg('weights')}, one number per record"
        )
    known = [each.name for each in relations]
    for name in given:
        if name not in known:
            raise ParameterError(
                f"relation_weights: the graph has no relation {name!r}{meant(str(name), known)}"
            )
    factors = {
        name: float(number(f"relation_weights: {name}", given[name])) for name in known if name in given
    }
    for name, factor in factors.items():
        if not (factor >= 0 and math.isfinite(factor)):
            raise ParameterError(f"relation_weights: {name}: {factor} is no finite number of at least 0")
    return factors


def weighted_by_relation(graph: Graph, given: Any, options: RunOptions) -> Graph:
    """Return the graph with the weight of each record multiplied by the factor of its relation.

    Records without a weight have weight 1, and relations that are not named the factor 1.
    """
    factors = checked_relation_weights(graph.relations, given)
    if not factors:
        return graph
    relations = graph.relations or ()
    _refuse_too_large(graph, options)
    values = [factors.get(each.name, 1.0) for each in relations]
    own = None if graph._weights is None else graph._weights.array
    most = max(
        (value * (1 if own is None else float(own[each.first : each.range.stop].max()))
         for each, value in zip(relations, values, strict=True) if each.m),
        default=0.0,
    )  # fmt: skip
    exponent = _exponent(values, most)
    products = np.empty(graph.num_edges, np.uint32)
    for each, value in zip(relations, values, strict=True):
        for first in range(each.first, each.range.stop, _BLOCK):
            part = slice(first, min(first + _BLOCK, each.range.stop))
            exact = value * (1.0 if own is None else own[part].astype(np.float64))
            rounded = np.minimum(np.rint(np.ldexp(exact, exponent)), _LARGEST)
            products[part] = np.where(exact > 0, np.maximum(rounded, 1), 0)
    return graph._with_weights(products, options, graph.weight_scale * math.ldexp(1.0, exponent))


def _refuse_too_large(graph: Graph, options: RunOptions) -> None:
    needed = 4 * graph.num_edges
    if options.memory_limit is not None and needed > options.memory_limit:
        raise MemoryBudgetError(
            f"relation_weights: the weights of {graph.num_edges:,} records need {needed / 1e6:,.1f} MB of memory, but "
            f"the budget is {options.memory_limit / 1e6:,.1f} MB. Raise memory_limit"
        )


def _exponent(values: list[float], most: float) -> int:
    """Return the power of two that weights are multiplied with before they are rounded.

    It is the least one that makes all factors whole, if one does. Otherwise the largest weight gets 31 bits.
    """
    array = np.array(values)
    for exponent in range(_FINEST + 1):
        whole = np.ldexp(array, exponent)
        if (whole == np.floor(whole)).all() and math.ldexp(most, exponent) <= _LARGEST:
            return exponent
    return min(_BITS - math.frexp(most)[1], 1000)
