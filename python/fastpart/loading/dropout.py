"""Dropout that is a function of keys, so that copies of a vertex drop the same entries wherever they are."""

from __future__ import annotations

import hashlib
import math

import torch
from torch import Tensor

from ..core.calls import called_well

_BLOCK = 1 << 12
"""Rows at a time: the random numbers of a block stay in the cache."""


@called_well
def dropout(h: Tensor, share: float, ids: Tensor, *keys: int) -> Tensor:
    """Apply dropout to rows of vertices. What is dropped depends on the keys, the id of the vertex and the column.

    Parameters
    ----------
    h : torch.Tensor
        Floating point, of shape (rows, ...).
    share : float
        Share of the entries that become 0. The others are divided by ``1 - share``.
    ids : torch.Tensor
        int64, of shape (rows,): id of each row's vertex.
    *keys : int
        Further numbers that the choice depends on, as seed, epoch, step and layer.

    Returns
    -------
    torch.Tensor
        As ``h``.

    Examples
    --------
    >>> import torch
    >>> from fastpart.loading import dropout
    >>> h, ids = torch.ones(3, 4), torch.tensor([7, 8, 7])
    >>> once = dropout(h, 0.5, ids, 0, 1)
    >>> bool((once[0] == once[2]).all()), once.unique().tolist()
    (True, [0.0, 2.0])
    """
    if not share:
        return h
    digest = hashlib.blake2b(repr(keys).encode(), digest_size=16).digest()
    of_rows, of_columns = (int.from_bytes(half, "little", signed=True) for half in (digest[:8], digest[8:]))
    flat = h.reshape(len(h), math.prod(h.shape[1:]))
    rows = _mixed(ids + of_rows)
    columns = _mixed(torch.arange(flat.shape[1], device=h.device) + of_columns) | 1
    scales = torch.empty_like(flat)
    for some, into in zip(rows.split(_BLOCK), scales.split(_BLOCK), strict=True):
        # The high bits of a product of two random numbers, one of them odd, are random.
        into.copy_(some.unsqueeze(1) * columns >= _threshold(share))
    return h * scales.mul_(1 / (1 - share)).reshape(h.shape)


def _threshold(share: float) -> int:
    """Return the number that a given share of all int64 is below."""
    return max(-(2**63), min(2**63 - 1, int((share - 0.5) * 2**64)))


def _mixed(x: Tensor) -> Tensor:
    """Return pseudorandom numbers, by the finalizer of SplitMix64."""
    x = (x ^ _shifted(x, 30)) * -0x40A7B892E31B1A47
    x = (x ^ _shifted(x, 27)) * -0x6B2FB644ECCEEE15
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, bits: int) -> Tensor:
    """Shift to the right like unsigned numbers."""
    return (x >> bits) & ((1 << (64 - bits)) - 1)
