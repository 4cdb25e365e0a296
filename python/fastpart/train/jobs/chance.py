"""A training that learns nothing says so, instead of going on for all its epochs without a word."""

from __future__ import annotations

import math
from typing import Any

from ...errors import GraphWarning, warn
from ..runs.history import score_of
from .loop import Report

_NEARLY = 0.98
"""Share of the loss of guessing from which on a loss is no better."""


def guessing(negatives: int) -> float:
    """Return the cross entropy of guessing which of ``1 + negatives`` pairs are edges, if one of them is."""
    share = 1 / (1 + negatives)
    return -share * math.log(share) - (1 - share) * math.log(1 - share)


def watched(report: Report, chance: float) -> Report:
    """Return a report of epochs that warns once if one has taught nothing.

    The loss of such an epoch is at least that of guessing, ``chance``, and its validation score is that of the epoch
    before, to the last digit: the network gives all vertices the same row. A first large step does this where features
    are large or much alike.
    """
    last, told = math.nan, False

    def reported(row: dict[str, Any]) -> None:
        nonlocal last, told
        score = score_of(row)
        if score == last and row["loss"] >= _NEARLY * chance and not told:
            told = True
            warn(
                f"epoch {row['epoch']}: the network has learned nothing, its loss of {row['loss']:.3g} is that of "
                "guessing. Where features are large or much alike, save the partition with standardise=True, or use a "
                "smaller lr",
                GraphWarning,
            )
        last = score
        report(row)

    return reported
