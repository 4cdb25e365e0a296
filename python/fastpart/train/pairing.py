"""Which methods of training go with which partitioners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import parameters
from .. import partitioners as known_partitioners
from ..errors import ParameterError

METHODS = {"full": None, "distdgl": "vertices", "sdt": "vertices", "distgnn": "edges", "sancus": "vertices"}
"""What trains, and over parts of what; the reference knows no parts."""

DEFAULTS = {
    "vertices": ("spring", "sigma", "grem", "random"),
    "edges": ("sigma", "hdrf", "dbh", "random"),
}
"""Partitioners by what the methods train over."""

ITEMS = ("vertices", "edges")
"""What there are parts of."""


@dataclass(frozen=True)
class Partitioned:
    """A partition to make, and the methods that train over it."""

    partitioner: str
    of: str
    parameters: Mapping[str, Any]
    methods: list[str]


def planned(methods: Sequence[str], partitioners: Sequence[str] | None) -> list[Partitioned]:
    """Return what to train over; for the reference alone, it is the first partition that can be made."""
    plan = []
    for name in dict.fromkeys(_names(methods, partitioners)):
        for of in ITEMS:
            given = _parameters_for(name, of)
            those = [method for method in methods if METHODS[method] == of]
            if given is not None and (partitioners is not None or name in DEFAULTS[of]):
                plan.append(Partitioned(name, of, given, those))
    if not plan:
        raise ParameterError("partitioners: none is given")
    if set(methods) <= {"full"}:
        return plan[:1]
    plan = [each for each in plan if each.methods]
    _refuse_useless(methods, partitioners, plan)
    return plan


def _names(methods: Sequence[str], partitioners: Sequence[str] | None) -> list[str]:
    if partitioners is not None:
        known = tuple(known_partitioners.PARTITIONERS)
        return [parameters.choice("partitioners", name, known) for name in partitioners]
    wanted = {METHODS[method] or "vertices" for method in methods}
    return [name for of in ITEMS if of in wanted for name in DEFAULTS[of]]


def _parameters_for(name: str, of: str) -> Mapping[str, Any] | None:
    """Return the parameters with which a partitioner makes parts of these items; None if it cannot."""
    variants = ({}, *known_partitioners.VARIANTS.get(name, ()))
    return next((given for given in variants if known_partitioners.items_of(name, given) == of), None)


def _refuse_useless(
    methods: Sequence[str], partitioners: Sequence[str] | None, plan: Sequence[Partitioned]
) -> None:
    """Refuse a partitioner that no method makes use of, and a method that no partitioner makes parts for."""
    for name in partitioners or ():
        if name not in {each.partitioner for each in plan}:
            of = known_partitioners.items_of(name, {})
            fitting = ", ".join(method for method, over in METHODS.items() if over == of)
            raise ParameterError(
                f"partitioners: {name} makes parts of {of}, over which none of the methods trains; add one "
                f"that does ({fitting})"
            )
    for method in methods:
        over = METHODS[method]
        if over is not None and not any(method in each.methods for each in plan):
            fitting = ", ".join(
                name for name in known_partitioners.PARTITIONERS if _parameters_for(name, over) is not None
            )
            raise ParameterError(
                f"methods: {method} trains over parts of {over}, which none of the partitioners makes; add "
                f"one that does ({fitting})"
            )
