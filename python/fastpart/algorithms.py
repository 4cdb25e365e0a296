"""All partitioners, each under its name.

Partitioners that most users need are also at the top: ``fastpart.multilevel`` is ``fastpart.algorithms.multilevel``.
"""

from typing import TYPE_CHECKING

from .core.calls import refusing
from .measures.expected import expected_cut
from .partitions.partitioners.builtin import (
    bytegnn,
    dbh,
    edges_of,
    fennel,
    greedy,
    grem,
    hash,
    hdrf,
    hep,
    ldg,
    multilevel,
    random,
    refennel,
    refine,
    reldg,
    sigma,
    spring,
    two_phase,
    update,
)
from .partitions.partitioners.choosing import partition
from .partitions.partitioners.custom import custom

__all__ = [
    "bytegnn",
    "custom",
    "dbh",
    "edges_of",
    "expected_cut",
    "fennel",
    "greedy",
    "grem",
    "hash",
    "hdrf",
    "hep",
    "ldg",
    "multilevel",
    "partition",
    "random",
    "refennel",
    "refine",
    "reldg",
    "sigma",
    "spring",
    "two_phase",
    "update",
]

if not TYPE_CHECKING:  # type checkers find unknown names themselves
    __getattr__ = refusing(__name__, __all__)


def __dir__() -> list[str]:
    return __all__
