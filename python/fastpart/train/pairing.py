"""Which methods of training go with which partitioners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import parameters
from .. import partitioners as known_partitioners
from ..errors import ParameterError

METHODS = {"full": None, "distdgl": "vertex", "sdt": "vertex", "distgnn": "edge", "sancus": "vertex"}
"""What trains, and over parts of what; the reference knows no parts."""

DEFAULTS = {
    "vertex": ("spring", "sigma", "grem", "random"),
    "edge": ("sigma", "hdrf", "dbh", "random"),
}
"""Partitioners by what the methods train over."""

ITEMS = {"vertex": "vertices", "edge": "edges"}
"""What there are parts of, by kind."""


@dataclass(frozen=True)
class Partitioned:
    """A partition to make, and the methods that train over it."""

    partitioner: str
    kind: str
    parameters: Mapping[str, Any]
    methods: list[str]


def planned(methods: Sequence[str], partitioners: Sequence[str] | None) -> list[Partitioned]:
    """Return what to train over; for the reference alone, it is the first partition that can be made."""
    plan = []
    for name in dict.fromkeys(_names(methods, partitioners)):
        for kind in ITEMS:
            given = _parameters_for(name, kind)
            those = [method for method in methods if METHODS[method] == kind]
            if given is not None and (partitioners is not None or name in DEFAULTS[kind]):
                plan.append(Partitioned(name, kind, given, those))
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
    kinds = {METHODS[method] or "vertex" for method in methods}
    return [name for kind in ITEMS if kind in kinds for name in DEFAULTS[kind]]


def _parameters_for(name: str, kind: str) -> Mapping[str, Any] | None:
    """Return the parameters with which a partitioner makes parts of this kind; None if it cannot."""
    variants = ({}, *known_partitioners.VARIANTS.get(name, ()))
    return next((given for given in variants if known_partitioners.kind_of(name, given) == kind), None)


def _refuse_useless(
    methods: Sequence[str], partitioners: Sequence[str] | None, plan: Sequence[Partitioned]
) -> None:
    """Refuse a partitioner that no method makes use of, and a method that no partitioner makes parts for."""
    for name in partitioners or ():
        if name not in {each.partitioner for each in plan}:
            kind = known_partitioners.kind_of(name, {})
            fitting = ", ".join(method for method, over in METHODS.items() if over == kind)
            raise ParameterError(
                f"partitioners: {name} makes parts of {ITEMS[kind]}, over which none of the methods trains; add one "
                f"that does ({fitting})"
            )
    for method in methods:
        over = METHODS[method]
        if over is not None and not any(method in each.methods for each in plan):
            fitting = ", ".join(
                name for name in known_partitioners.PARTITIONERS if _parameters_for(name, over) is not None
            )
            raise ParameterError(
                f"methods: {method} trains over parts of {ITEMS[over]}, which none of the partitioners makes; add "
                f"one that does ({fitting})"
            )
