"""A part of the vertices in memory: its inner vertices, and their in-edges in blocks, by the part of the source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from .....partitions.part_files import Ids, LocalIds
from .....partitions.parts import VertexPartData
from ..part import Part

Edges = tuple[Ids, Ids]
"""Where the in-edges of each inner vertex begin, and their sources."""


@dataclass
class Blocks(Part):
    """The rows A[p, :] of the matrix of the edges, for the part p of a vertex partition.

    Attributes
    ----------
    halo_parts, halo_rows : numpy.ndarray
        Part of each source in the halo, and its row there, int32. Sources from ``num_own`` on are the halo.
    """

    halo_parts: LocalIds = field(default_factory=lambda: np.empty(0, np.int32))
    halo_rows: LocalIds = field(default_factory=lambda: np.empty(0, np.int32))

    @staticmethod
    def links(stored: VertexPartData, new: LocalIds, parts: int, device: torch.device) -> dict[str, Any]:
        """Return the halo of one hop. One of two hops has no edges to inner vertices."""
        ring = stored.halo_sizes[0]
        return {"halo_parts": stored.halo_parts[:ring], "halo_rows": stored.halo_rows[:ring]}

    @property
    def facts(self) -> dict[str, int]:
        """Numbers of inner vertices, of sources in other parts, and of edges."""
        return {"vertices": self.num_own, "halo": len(self.halo_parts), "edges": len(self.indices)}

    def edges(self, index: int) -> dict[int, Edges]:
        """Return the blocks A[p, q] that are not empty, int64, by q, where p is ``index``. Sources are rows of q."""
        owner = np.concatenate([np.full(self.num_own, index), self.halo_parts])[self.indices]
        row = np.concatenate([np.arange(self.num_own), self.halo_rows])
        ends = np.repeat(np.arange(self.num_own), np.diff(self.indptr))
        blocks = {}
        for q in np.unique(owner):
            those = np.flatnonzero(owner == q)
            counts = np.bincount(ends[those], minlength=self.num_own)
            blocks[int(q)] = (np.concatenate(([0], np.cumsum(counts))), row[self.indices[those]])
        return blocks
