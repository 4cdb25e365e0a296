"""The methods that train by workers."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .worker import Worker


@dataclass(frozen=True)
class Method:
    """What must be known of a method before torch is imported.

    Attributes
    ----------
    module : str
        Where its class ``Worker`` is, below ``fastpart.train``.
    dgl : bool
        Whether it takes DGL. Others also run where that is not installed.
    """

    module: str
    dgl: bool

    def worker(self) -> type[Worker]:
        """Return the class of its workers."""
        module = importlib.import_module(f"fastpart.train.{self.module}")
        found: type[Worker] = module.Worker
        return found


METHODS = {
    "sdt": Method("model_averaging.training", dgl=True),
    "distgnn": Method("edge_parts.training", dgl=False),
    "sancus": Method("row_blocks.training", dgl=False),
}
