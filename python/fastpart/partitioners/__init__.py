"""The partitioners: one function each, all with the same first and last parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..partition import Partition
from .custom import custom
from .dbh import dbh
from .edge_streams import greedy, hdrf
from .grem import grem
from .multilevel import multilevel
from .random import hash, random
from .sigma import sigma
from .spring import spring
from .two_phase import two_phase
from .vertex_streams import fennel, ldg, refennel, reldg

__all__ = [
    "PARTITIONERS",
    "VARIANTS",
    "custom",
    "dbh",
    "fennel",
    "greedy",
    "grem",
    "hash",
    "hdrf",
    "kind_of",
    "ldg",
    "multilevel",
    "random",
    "refennel",
    "reldg",
    "sigma",
    "spring",
    "two_phase",
]

PARTITIONERS: dict[str, Callable[..., Partition]] = {
    "spring": spring,
    "sigma": sigma,
    "grem": grem,
    "multilevel": multilevel,
    "random": random,
    "hash": hash,
    "ldg": ldg,
    "fennel": fennel,
    "reldg": reldg,
    "refennel": refennel,
    "dbh": dbh,
    "two_phase": two_phase,
    "greedy": greedy,
    "hdrf": hdrf,
}
"""Every partitioner by the name that the command line knows it by."""

VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    "sigma": ({"mode": "edge"},),
    "random": ({"mode": "edge"},),
    "two_phase": ({"scoring": "hdrf"},),
}
"""Parameters with which a partitioner is another algorithm, for comparisons of all."""

_OF_EDGES = frozenset({"dbh", "greedy", "hdrf", "two_phase"})


def kind_of(name: str, parameters: Mapping[str, Any]) -> str:
    """Return what the partitioner gives parts to when called with these parameters: "vertex" or "edge"."""
    return "edge" if name in _OF_EDGES or parameters.get("mode") == "edge" else "vertex"
