"""Sets of rows: arrays that ascend. Processes without torch use them, too."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

RowIds = npt.NDArray[np.uint32]


def among(rows: RowIds, keys: RowIds) -> npt.NDArray[np.bool_]:
    """Return which rows are among the keys, which ascend."""
    if not len(keys):
        return np.zeros(len(rows), np.bool_)
    places = np.searchsorted(keys, rows)
    places[places == len(keys)] = 0
    return keys[places] == rows
