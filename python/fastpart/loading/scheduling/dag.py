"""The operators that make a batch, and which of them wait for which.

Source: Zheng et al., "ByteGNN: Efficient Graph Neural Network Training at Large Scale", PVLDB 15(6), 2022, section 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any


@dataclass(frozen=True)
class BatchState:
    """A batch that is not complete yet.

    Attributes
    ----------
    step : int
        Its number in the epoch.
    results : dict
        The result of each operator.
    """

    step: int
    results: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, operator: str) -> Any:
        return self.results[operator]


Run = Callable[[BatchState], Any]
"""The work of an operator."""


@dataclass(frozen=True)
class Pieces:
    """Work of an operator that is left to do in any order, and its result after it."""

    calls: Sequence[Callable[[], object]]
    result: Any


@dataclass(frozen=True)
class Operator:
    """A step of making a batch.

    Attributes
    ----------
    name : str
        Its name in traces. ByteGNN has "seed", "positive", "negative", "neighbourhood" and "features".
    run : callable
        Returns the result for a :class:`BatchState`, or :class:`Pieces`. It must depend only on the number of the
        step and the results of the operators before it. Several threads call it.
    after : tuple of str
        Operators whose results it uses.
    """

    name: str
    run: Run
    after: tuple[str, ...] = ()


class Dag:
    """Operators without circles. The result of the last one is the batch.

    Attributes
    ----------
    operators : dict of str to Operator
        By name, each after those that it waits for.
    """

    def __init__(self, operators: Sequence[Operator]) -> None:
        known = {operator.name: operator for operator in operators}
        if len(known) < len(operators):
            raise ValueError("operators: a name occurs twice")
        waits = {operator.name: operator.after for operator in operators}
        if missing := {name for after in waits.values() for name in after} - known.keys():
            raise ValueError(f"operators: {', '.join(sorted(missing))} is waited for, but not there")
        try:
            order = list(TopologicalSorter(waits).static_order())
        except CycleError as error:
            raise ValueError(f"operators: they wait for each other: {error.args[1]}") from error
        self.operators = {name: known[name] for name in order}
        self.last = order[-1]

    def begin(self) -> list[Operator]:
        """Return the operators that wait for none."""
        return [operator for operator in self.operators.values() if not operator.after]

    def next(self, done: str, results: dict[str, Any]) -> list[Operator]:
        """Return the operators that can begin, now that one is done."""
        return [
            operator
            for operator in self.operators.values()
            if done in operator.after and all(name in results for name in operator.after)
        ]


def operators(seed: Run, neighbourhood: Run, features: Run, **before: Run) -> Dag:
    """Return the operators of a batch: seeds, their neighbourhood, and its features.

    Training on edges has two ``before`` the neighbourhood: "positive", what the seeds are joined to, and "negative".
    """
    return Dag(
        [
            Operator("seed", seed),
            *(Operator(name, run, ("seed",)) for name, run in before.items()),
            Operator("neighbourhood", neighbourhood, tuple(before) or ("seed",)),
            Operator("features", features, ("neighbourhood",)),
        ]
    )
