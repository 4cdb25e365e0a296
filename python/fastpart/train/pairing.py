"""The pairs of partitioners and training methods in a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from ..core import parameters
from ..core.parameters import Of
from ..errors import ParameterError
from ..partitions import partitioners as known_partitioners
from .registry import names, of


def compared() -> dict[str, Of | None]:
    """Return the methods that are compared, and the items of their parts. The reference ignores parts."""
    known = map(of, names())
    return {method.name: method.over for method in known if method.compared}


DEFAULTS: dict[Of, tuple[str, ...]] = {
    "vertices": ("spring", "sigma", "grem", "random"),
    "edges": ("sigma", "hdrf", "dbh", "random"),
}
"""Default partitioners by the items of the parts."""

ITEMS: tuple[Of, ...] = get_args(Of)


@dataclass(frozen=True)
class Pairing:
    """A partitioner with its parameters, and the methods that train over its partition."""

    partitioner: str
    of: Of
    parameters: Mapping[str, Any]
    methods: list[str]


def planned(methods: Sequence[str], partitioners: Sequence[str] | None) -> list[Pairing]:
    """Return the pairings. For the reference alone, one partition suffices."""
    plan = []
    for name in dict.fromkeys(_names(methods, partitioners)):
        for items in ITEMS:
            given = _parameters_for(name, items)
            those = [method for method in methods if compared()[method] == items]
            if given is not None and (partitioners is not None or name in DEFAULTS[items]):
                plan.append(Pairing(name, items, given, those))
    if not plan:
        raise ParameterError("partitioners: the list is empty. Name at least one")
    if all(compared()[method] is None for method in methods):
        return plan[:1]
    plan = [each for each in plan if each.methods]
    _refuse_useless(methods, partitioners, plan)
    return plan


def _names(methods: Sequence[str], partitioners: Sequence[str] | None) -> list[str]:
    if partitioners is not None:
        known = tuple(known_partitioners.PARTITIONERS)
        return [parameters.choice("partitioners", name, known) for name in partitioners]
    wanted = {compared()[method] or "vertices" for method in methods}
    return [name for items in ITEMS if items in wanted for name in DEFAULTS[items]]


def _parameters_for(name: str, items: str) -> Mapping[str, Any] | None:
    """Return the parameters with which a partitioner makes parts of these items. None if it cannot."""
    variants = ({}, *known_partitioners.VARIANTS.get(name, ()))
    return next((given for given in variants if known_partitioners.items_of(name, given) == items), None)


def _refuse_useless(
    methods: Sequence[str], partitioners: Sequence[str] | None, plan: Sequence[Pairing]
) -> None:
    """Refuse a partitioner that no method can use, and a method for which no partitioner makes parts."""
    for name in partitioners or ():
        if name not in {each.partitioner for each in plan}:
            items = known_partitioners.items_of(name, {})
            fitting = ", ".join(method for method, over in compared().items() if over == items)
            raise ParameterError(
                f"partitioners: {name} makes parts of {items}, but no method trains over these. Add one that does "
                f"({fitting})"
            )
    for method in methods:
        over = compared()[method]
        if over is not None and not any(method in each.methods for each in plan):
            fitting = ", ".join(
                name for name in known_partitioners.PARTITIONERS if _parameters_for(name, over) is not None
            )
            raise ParameterError(
                f"methods: {method} trains over parts of {over}, but no partitioner makes these. Add one that does "
                f"({fitting})"
            )
