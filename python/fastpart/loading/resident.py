"""Rows of features that stay on a device: batches take them from there, and only the others are copied to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ..core.pairs import among
from .exchange import RowIds

_STEP = 1 << 16
"""Rows that are copied to the device at a time."""

_SHARE = 0.5
"""Share of the free memory of a GPU that rows take unless told otherwise. Networks and batches need the rest."""


def device_bytes(device: torch.device, given: int | None) -> int:
    """Return the bytes for rows on a device: what is given, else half of the free memory of a GPU, none on a CPU."""
    if given is not None:
        return given
    return int(torch.cuda.mem_get_info(device)[0] * _SHARE) if device.type == "cuda" else 0


class Resident:
    """Rows on a device.

    Parameters
    ----------
    rows : numpy.ndarray
        uint32: the rows, which ascend.
    read : callable
        Returns the features of rows.
    device : torch.device
        Where they stay.
    """

    def __init__(
        self, rows: RowIds, read: Callable[[RowIds], npt.NDArray[Any]], device: torch.device
    ) -> None:
        self.rows, self._device = rows, device
        none = torch.from_numpy(read(rows[:0]))
        self._values = none.new_empty((len(rows), *none.shape[1:]), device=device)
        for start in range(0, len(rows), _STEP):
            self._values[start : start + _STEP] = torch.from_numpy(read(rows[start : start + _STEP]))

    def joined(self, rows: RowIds, others: npt.NDArray[Any]) -> Tensor:
        """Return the features of rows on the device. ``others`` are those of the rows that are not resident."""
        here = among(rows, self.rows)
        rest = self._moved(others)
        x = rest.new_empty((len(rows), *rest.shape[1:]))
        places = np.searchsorted(self.rows, rows[here])
        x[self._moved(np.flatnonzero(here))] = self._values[self._moved(places)]
        x[self._moved(np.flatnonzero(~here))] = rest
        return x

    def _moved(self, array: npt.NDArray[Any]) -> Tensor:
        tensor = torch.from_numpy(array)
        if self._device.type == "cuda":
            return tensor.pin_memory().to(self._device, non_blocking=True)
        return tensor
