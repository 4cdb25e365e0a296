"""Agreement among the processes of ``torch.distributed``."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist


def is_first() -> bool:
    """Return whether this is rank 0."""
    return bool(dist.get_rank() == 0)


def from_first(value: Any) -> Any:
    """Return what rank 0 has."""
    values = [value]
    dist.broadcast_object_list(values)
    return values[0]
