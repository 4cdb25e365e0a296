"""Rows of features that stay on a device: batches take them from there, and only the others are copied to it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ...core.pairs import among
from .source import Array, RowIds, RowSource

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
    ids : numpy.ndarray
        uint32: which rows. They ascend.
    source : RowSource
        Has these rows.
    device : torch.device
        Where they stay.
    """

    def __init__(self, ids: RowIds, source: RowSource, device: torch.device) -> None:
        self.ids, self._device = ids, device
        none = torch.from_numpy(source.rows(ids[:0]))
        self._values = none.new_empty((len(ids), *none.shape[1:]), device=device)
        for start in range(0, len(ids), _STEP):
            self._values[start : start + _STEP] = torch.from_numpy(source.rows(ids[start : start + _STEP]))

    def rows(self, ids: RowIds) -> Tensor:
        """Return rows that are resident."""
        return self._values[self._moved(np.searchsorted(self.ids, ids))]

    def joined(self, rows: RowIds, others: Array) -> Tensor:
        """Return the features of rows on the device. ``others`` are those of the rows that are not resident."""
        here = among(rows, self.ids)
        rest = self._moved(others)
        x = rest.new_empty((len(rows), *rest.shape[1:]))
        x[self._moved(np.flatnonzero(here))] = self.rows(rows[here])
        x[self._moved(np.flatnonzero(~here))] = rest
        return x

    def _moved(self, array: Array) -> Tensor:
        tensor = torch.from_numpy(array)
        if self._device.type == "cuda":
            return tensor.pin_memory().to(self._device, non_blocking=True)
        return tensor
