"""Rows of features that stay on a device: batches take them from there, and only the others are copied to it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from .index import ABSENT, RowIndex
from .source import Array, RowIds

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
    index : RowIndex
        Which rows, at least one.
    read : callable
        Returns such rows.
    device : torch.device
        Where they stay.
    """

    def __init__(self, index: RowIndex, read: Callable[[RowIds], Array], device: torch.device) -> None:
        self.index, self._device = index, device
        none = torch.from_numpy(read(index.ids[:0]))
        self._values = none.new_empty((len(index.ids), *none.shape[1:]), device=device)
        for start in range(0, len(index.ids), _STEP):
            piece = slice(start, start + _STEP)
            self._values[piece] = torch.from_numpy(read(index.ids[piece]))

    def joined(self, ids: RowIds, others: Array) -> Tensor:
        """Return the features of rows on the device. ``others`` are those of the rows that are not resident."""
        places = self.index.places(ids)
        here = places != ABSENT
        kept = self._values.index_select(0, self._moved(places[here]))
        if here.all():
            return kept
        x = kept.new_empty((len(places), *kept.shape[1:]))
        x[self._moved(np.flatnonzero(here))] = kept
        x[self._moved(np.flatnonzero(~here))] = self._moved(others)
        return x

    def _moved(self, array: Array) -> Tensor:
        tensor = torch.from_numpy(array)
        if self._device.type == "cuda":
            return tensor.pin_memory().to(self._device, non_blocking=True)
        return tensor
