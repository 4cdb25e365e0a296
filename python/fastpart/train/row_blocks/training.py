"""The worker of a block of rows."""

from __future__ import annotations

from ..data import Dataset
from ..full_graph.training import FullBatch
from .part import load_part


class Worker(FullBatch):
    """The worker of the part of its rank."""

    open = Dataset
    load_part = staticmethod(load_part)
