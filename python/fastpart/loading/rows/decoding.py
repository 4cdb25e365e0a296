"""Coded rows on a device."""

from __future__ import annotations

import torch
from torch import Tensor

from ...partitions.coding import Coding


def decoded(rows: Tensor, coding: Coding) -> Tensor:
    """Return coded rows as float32 on their device, bit for bit as :meth:`fastpart.partitions.coding.Coding.decode`."""
    codes, own = rows.split([coding.width, rows.shape[1] - coding.width], dim=1)
    if coding.columns is None:
        scales = own.clone(memory_format=torch.contiguous_format).view(torch.float32)
        low, step = scales[:, :1], scales[:, 1:]
    else:
        low, step = torch.from_numpy(coding.columns.copy()).to(rows.device)
    return codes.float().mul_(step).add_(low)
