"""Upper bounds on the loads of parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Cap = int | npt.NDArray[np.int64]
"""An upper bound: the same for all parts, or one of each."""


def cap_of_parts(cap: int | list[Any]) -> Cap:
    """Return a cap of all parts, or an array of caps, or of those of several bounds."""
    return cap if isinstance(cap, int) else frozen(np.array(cap, dtype=np.int64))


def plain(cap: Cap) -> int | list[int]:
    """Return a cap as JSON holds it."""
    return cap.tolist() if isinstance(cap, np.ndarray) else cap


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the array, which is read-only from now on."""
    array.flags.writeable = False
    return array
