"""Features minus their mean, divided by their deviation, both of the training vertices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ..errors import ParameterError
from .rows import Array, Rows

STATISTICS = "feature_statistics.npy"
"""float64 of shape (2, shape of a row): what is subtracted from features, then what they are divided by."""

_BLOCK_BYTES = 4 << 20
"""Numbers that are counted at a time, as float64."""

Numbers = npt.NDArray[np.float64]


def standardised(
    features: Rows, train: npt.NDArray[np.bool_], kept: Sequence[int] = ()
) -> tuple[Rows, Numbers]:
    """Return standardised rows in float64, and the statistics that make them. Columns that are ``kept`` do not change.

    ``train`` tells the training vertices. Their rows are read once, in blocks, and the moments of the blocks are merged
    in order (Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979).
    """
    if not train.any():
        raise ParameterError("standardise: the splits have no training vertices. Name them as train")
    statistics = _statistics(features, train).reshape(2, *features.shape[1:])
    if kept:
        statistics[:, kept] = np.array([[0.0], [1.0]])
    mean, deviation = statistics

    def read(start: int, stop: int) -> Array:
        rows = features.read(start, stop).astype(np.float64)
        rows -= mean
        rows /= deviation
        return rows

    return Rows(features.shape, np.dtype(np.float64), read), statistics


def _statistics(features: Rows, train: npt.NDArray[np.bool_]) -> Numbers:
    width = math.prod(features.shape[1:])
    count, (mean, squares) = 0, np.zeros((2, width))
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    for rows in _blocks(features, train, width):
        known, count = count, count + len(rows)
        difference = rows.mean(axis=0) - mean
        squares += np.square(rows - rows.mean(axis=0)).sum(axis=0)
        squares += np.square(difference) * (known * len(rows) / count)
        mean += difference * (len(rows) / count)
        np.minimum(low, rows.min(axis=0), out=low)
        np.maximum(high, rows.max(axis=0), out=high)
    # Rounding would give a constant column a tiny deviation, and other vertices huge numbers.
    constant = low == high
    return np.stack([np.where(constant, low, mean), np.where(constant, 1, np.sqrt(squares / count))])


def _blocks(features: Rows, train: npt.NDArray[np.bool_], width: int) -> Iterator[Numbers]:
    """Yield the rows of the training vertices as float64. Refuse those that have no mean."""
    step = max(_BLOCK_BYTES // (8 * max(width, 1)), 1)
    for start in range(0, len(features), step):
        chosen = np.flatnonzero(train[start : start + step])
        if not len(chosen):
            continue
        block = features.read(start, min(start + step, len(features)))
        rows = block[chosen].reshape(len(chosen), width).astype(np.float64)
        wrong = ~np.isfinite(rows).all(axis=1)
        if wrong.any():
            row = start + int(chosen[wrong.argmax()])
            raise ParameterError(
                f"features: row {row} of a training vertex has no finite numbers to standardise"
            )
        yield rows
