"""Helpers for rank 0 of ``torch.distributed``."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist


def is_first() -> bool:
    """Return whether this is rank 0."""
    return bool(dist.get_rank() == 0)


def from_first(value: Any) -> Any:
    """Return the value of rank 0 in all processes."""
    values = [value]
    dist.broadcast_object_list(values)
    return values[0]
