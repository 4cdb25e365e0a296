"""The worker of a part of the edges."""

from __future__ import annotations

from ..edge_data import EdgeDataset
from ..full_graph.training import FullBatch
from .part import load_part


class Worker(FullBatch):
    """The worker of the part of its rank."""

    open = EdgeDataset
    load_part = staticmethod(load_part)
