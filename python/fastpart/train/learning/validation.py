"""The score that decides which epoch is the best."""

from __future__ import annotations

import math
from typing import Protocol

from ...errors import GraphWarning, ParameterError, warn
from ..config import Options
from ..ranks import is_first


def is_better(score: float, best: float) -> bool:
    """Return whether an epoch is the best so far, given the best score before it, -inf if there is none.

    A score of NaN is better than none, so that the last epoch is the best if there is nothing to validate on. It is
    never better than a score.
    """
    return score > best or (math.isnan(score) and best == -math.inf)


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
    what = "the directory has nothing labelled to validate on"
    if options.patience is not None:
        raise ParameterError(
            f"patience: {what}, so no epoch is better than another. Save the partition with validation vertices "
            '(splits={"train": ..., "val": ...}) or edges, or leave out patience'
        )
    if is_first():
        warn(
            f"{what}, so the last epoch counts as the best. Save the partition with validation vertices "
            '(splits={"train": ..., "val": ...}) or edges',
            GraphWarning,
        )
