"""A part of the edges in memory: copies of vertices, roots first, their edges, and the parts with other copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .....partitions.part_files import LocalIds
from .....partitions.parts import EdgePartData
from ..part import Part
from ..wire import Lists


def _none() -> Lists:
    return Lists([torch.empty(0, dtype=torch.int64)])


@dataclass
class Copies(Part):
    """The vertices of a part. Its own vertices are the roots. The others have their root elsewhere.

    Attributes
    ----------
    up, down : Lists
        By part. ``up``: leaves here whose root is there. ``down``: roots here that have a leaf there. Both ascend by
        vertex.
    """

    up: Lists = field(default_factory=_none)
    down: Lists = field(default_factory=_none)

    @staticmethod
    def links(stored: EdgePartData, new: LocalIds, parts: int, device: torch.device) -> dict[str, Any]:
        """Return ``up`` and ``down``."""

        def by_part(ids_of: Callable[[int], LocalIds]) -> Lists:
            return Lists(
                [torch.from_numpy(new[ids_of(part)]).to(device, torch.int64) for part in range(parts)]
            )

        return {"up": by_part(stored.send), "down": by_part(stored.recv)}

    @property
    def local_degree(self) -> Tensor:
        """In-edges of each copy that are here, int64."""
        return torch.from_numpy(np.diff(self.indptr)).to(self.degree.device)

    @property
    def facts(self) -> dict[str, int]:
        """Numbers of copies, of roots among them, and of edges."""
        return {"vertices": len(self.vertices), "roots": self.num_own, "edges": len(self.indices)}
