"""The worker of a block of rows."""

from __future__ import annotations

from ..data import Dataset
from ..full_graph.training import FullBatch
from .share import share


class Worker(FullBatch):
    """One of the workers; it has the part of its rank."""

    open = Dataset
    share = staticmethod(share)
