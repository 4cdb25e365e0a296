"""The methods that train by workers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .worker import Worker

METHODS = {
    "links": "link_prediction.training",
    "sampled": "mini_batches.training",
    "bytegnn": "mini_batches.training",
    "armada": "disaggregated.training",
    "sdt": "model_averaging.training",
    "distgnn": "edge_parts.training",
    "sancus": "row_blocks.training",
}
"""Module of the class ``Worker`` of each method, below ``fastpart.train``."""


def worker_of(method: str) -> type[Worker]:
    """Return the class of the workers of a method."""
    worker: type[Worker] = importlib.import_module(f"fastpart.train.{METHODS[method]}").Worker
    return worker
