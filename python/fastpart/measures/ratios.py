"""Ratios, with a value where there is nothing to count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Shares = npt.NDArray[np.float64]
"""The share of each part in the whole. The sum is 1."""


def ratio(count: float, total: int, empty: float) -> float:
    """Return the share of a total. Of nothing it is ``empty``."""
    return count / total if total else empty


def balance(largest: int, parts: int, total: int) -> float:
    """Return the largest count of a part relative to the mean. Of nothing it is 1."""
    return ratio(largest * parts, total, empty=1.0)


def balance_of(counts: npt.ArrayLike, total: int, shares: Shares | None) -> float:
    """Return the largest count of a part relative to its share of a total. Equal shares are None."""
    array = np.asarray(counts)
    if shares is None or not total:
        return balance(int(array.max(initial=0)), len(array), total)
    return float((array / shares).max()) / total


def shares_of(parameters: Mapping[str, Any], k: int) -> Shares | None:
    """Return the shares of ``sizes`` in the parameters of a partition of k parts. None: all are equal."""
    try:
        sizes: Shares = np.asarray(parameters.get("sizes"), np.float64)
    except (TypeError, ValueError):  # a manifest may hold anything
        return None
    if sizes.shape != (k,) or not (np.isfinite(sizes).all() and sizes.min() > 0) or np.ptp(sizes) == 0:
        return None
    shares: Shares = sizes / sizes.sum()
    return shares
