"""The variants of the partitioners, for everything that runs all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .builtin import ALGORITHMS, SUCCESSORS

VARIANTS: dict[str, tuple[dict[str, Any], ...]] = {
    name: tuple(
        dict([variant]) for variant in [*([("of", "edges")] if len(known.of) > 1 else []), *known.variants]
    )
    for name, known in ALGORITHMS.items()
}
"""Parameters that select another variant of a partitioner."""


def needs_splits(name: str) -> bool:
    """Return whether the partitioner cannot run without the training vertices."""
    return any(field.kind == "splits" for field in ALGORITHMS[name].fields)


def items_of(name: str, parameters: Mapping[str, Any]) -> str:
    """Return whether the partitioner partitions "vertices" or "edges" when called with these parameters."""
    known = (ALGORITHMS | SUCCESSORS).get(name)
    of = known.of if known else ["vertices", "edges"]
    return str(parameters.get("of", of[0])) if len(of) > 1 else of[0]
