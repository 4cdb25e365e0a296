"""A training that learns nothing says so, instead of going on for all its epochs without a word."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ...errors import GraphWarning, warn
from ..runs.history import score_of
from .dead_layers import DEAD
from .loop import Report

_NEARLY = 0.98
"""Share of the loss of guessing from which on a loss is no better."""


@dataclass(frozen=True)
class Guessing:
    """How a network looks that gives all vertices, or all pairs, the same output.

    Attributes
    ----------
    loss : float
        Its loss is at least this one, of guessing.
    rows : int
        So many rows of the history in sequence have the same score, to the last digit.
    epochs : int
        So many epochs are needed to learn anything. A network that learns may begin with a larger loss.
    """

    loss: float
    rows: int = 2
    epochs: int = 1


def watched(report: Report, guessing: Guessing | None, remedy: str) -> Report:
    """Return a report of epochs that warns once if a network learns nothing.

    Either all its rows are zero after a layer, or its loss and its scores are those of guessing. A first large step
    does both where features are large or much alike. Without ``guessing`` its loss is not known.
    """
    last, same, told = math.nan, 0, False

    def is_guessing(row: dict[str, Any]) -> bool:
        nonlocal last, same
        score = score_of(row)
        if guessing is None or not math.isfinite(score):
            return False
        same, last = same + 1 if score == last else 1, score
        enough = same >= guessing.rows and row["epoch"] + 1 >= guessing.epochs
        return enough and row["loss"] >= _NEARLY * guessing.loss

    def reported(row: dict[str, Any]) -> None:
        nonlocal told
        dead, guesses = row.pop(DEAD, None), is_guessing(row)
        if (dead or guesses) and not told:
            told = True
            why = (
                f"all rows are zero after layer {dead}, so all vertices have the same output"
                if dead
                else f"the network has learned nothing, its loss of {row['loss']:.3g} is that of guessing"
            )
            warn(
                f"epoch {row['epoch']}: {why}. Where features are large or much alike, {remedy}", GraphWarning
            )
        report(row)

    return reported
