"""Columns of features of very different scales, which a network learns little from, are named before it trains."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.parameters import shown
from ...core.standardising import STATISTICS
from ...errors import GraphFormatError, GraphWarning, arg, code, warn
from ..data import AnyDataset

_ROWS = 1000
"""Rows of a sample, at most."""

_PARTS = 8
"""Parts that it is taken of, at most."""

_NUMBERS = 1 << 20
"""Numbers of a sample, at most."""

_LARGE = 10.0
"""Smaller numbers do no harm, whatever the others are."""

_RATIO = 100.0
"""Scales are very different from here on. Words that occur or do not, as 1 and 0, differ less in such a sample."""


def remedy_of(dataset: AnyDataset[Any] | None) -> str:
    """Return what to do about features that a network cannot learn from."""
    done = dataset is not None and is_standardised(dataset)
    smaller = f"use a smaller {code('lr', '--lr')}"
    return smaller if done else f"save the partition with {arg('standardise', True)}, or {smaller}"


def is_standardised(dataset: AnyDataset[Any]) -> bool:
    """Return whether features of a directory are standardised, or those of a type if it has types."""
    return (dataset.path / STATISTICS).exists() or any(dataset.path.glob(f"types/*/{STATISTICS}"))


def warn_of_scales(dataset: AnyDataset[Any]) -> None:
    """Warn if some columns of features are much larger than others, going by a sample of the rows."""
    if is_standardised(dataset):
        return
    for name, rows in _samples(dataset):
        finite = np.where(np.isfinite(rows), rows, 0.0)
        scales = np.sqrt(np.square(finite).mean(axis=0))
        scales[[each.place for each in dataset.task.categories.get(name, {}).values()]] = (
            0  # codes have no size
        )
        used = np.flatnonzero(scales)
        if not len(used):
            continue
        low = np.percentile(scales[used], 10, method="lower")
        column = int(scales.argmax())
        if scales[column] >= max(_LARGE, _RATIO * low):
            of_type = f" of {name!r}" if name else ""
            warn(
                f"source: features{of_type} in {shown(dataset.path)} have columns of very different scales: numbers "
                f"of about {scales[column]:.2g} in column {column}, and of {low:.2g} in others. A network learns "
                f"little from the small ones. Save the partition with {arg('standardise', True)}",
                GraphWarning,
            )


def _samples(dataset: AnyDataset[Any]) -> Iterator[tuple[str, npt.NDArray[np.float64]]]:
    """Yield samples of the rows of features, by type in a graph with types. The same ones in every call."""
    for name, of_type in dataset.types.items():
        parts = [part for part in of_type if part.row_type("features") is not None and part.num_inner]
        chosen = [parts[place] for place in _spread(len(parts), _PARTS)]
        if not chosen:
            continue
        width = int(np.prod(chosen[0].row_type("features")[1]))
        rows = max(1, min(_ROWS, _NUMBERS // max(width, 1)) // len(chosen))
        found = []
        for part in chosen:
            with suppress(GraphFormatError):  # the file lies on another machine, or training will refuse it
                found.append(part.features_of(_spread(part.num_inner, rows)))
        if found:
            yield name, np.concatenate(found).reshape(-1, width).astype(np.float64)


def _spread(count: int, most: int) -> npt.NDArray[np.int64]:
    """Return at most so many of the numbers from 0 to ``count - 1``, at equal distances."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
