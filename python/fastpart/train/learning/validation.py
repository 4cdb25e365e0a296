"""The score that decides which epoch is the best."""

from __future__ import annotations

import math
from typing import Protocol

from ...errors import GraphWarning, ParameterError, code, warn
from ..options import Options
from ..ranks import is_first

UNSCORED = -math.inf
"""The score of an epoch without one. The last of such epochs is the best if none has a score."""

BROKEN = math.nan
"""The score of an epoch whose loss is not finite, and the best score before the first epoch."""


def is_better(score: float, best: float) -> bool:
    """Return whether an epoch is the best so far, given the best score before it.

    An epoch whose loss is not finite is better than none, because every training has a best epoch. It never takes the
    place of one with a loss.
    """
    if math.isnan(score):
        return math.isnan(best)
    return math.isnan(best) or score > best or score == best == UNSCORED


class ValidationData(Protocol):
    """A dataset with something to validate on, or without.

    Attributes
    ----------
    num_val : int
        Number of labelled vertices, or edges, that the validation score counts.
    """

    @property
    def num_val(self) -> int: ...  # noqa: D102


def refuse_patience_without_validation(dataset: ValidationData, options: Options) -> None:
    """Raise an error if ``patience`` has nothing to go by. Without it, warn that the last epoch counts as the best."""
    if dataset.num_val:
        return
    what, splits = (
        "the directory has nothing labelled to validate on",
        code('splits={"train": ..., "val": ...}', "--splits FILE"),
    )
    if options.patience is not None:
        raise ParameterError(
            f"patience: {what}, so no epoch is better than another. Save the partition with validation vertices "
            f"({splits}) or edges, or leave out {code('patience', '--patience')}"
        )
    if is_first():
        warn(
            f"{what}, so the last epoch counts as the best. Save the partition with validation vertices "
            f"({splits}) or edges",
            GraphWarning,
        )
