"""Rows that hold NaN or an infinite number."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def not_finite(rows: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return which rows hold NaN or an infinite number, ascending."""
    if rows.dtype.kind != "f" or np.isfinite(rows).all():
        return np.empty(0, np.int64)
    return np.flatnonzero(~np.isfinite(rows.reshape(len(rows), -1)).all(axis=1))
