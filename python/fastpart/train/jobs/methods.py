"""The methods that train by workers."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .worker import Worker


@dataclass(frozen=True)
class Method:
    """Facts about a method that are needed before torch is imported.

    Attributes
    ----------
    module : str
        Module of its class ``Worker``, below ``fastpart.train``.
    dgl : bool
        Whether it needs DGL.
    """

    module: str
    dgl: bool

    def worker(self) -> type[Worker]:
        """Return the class of its workers."""
        worker: type[Worker] = importlib.import_module(f"fastpart.train.{self.module}").Worker
        return worker


METHODS = {
    "sdt": Method("model_averaging.training", dgl=True),
    "distgnn": Method("edge_parts.training", dgl=False),
    "sancus": Method("row_blocks.training", dgl=False),
}
