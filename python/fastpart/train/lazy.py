"""The public names of training, imported on first use.

torch takes seconds to import, and only training needs it.
"""

from __future__ import annotations

import importlib
from typing import Any

from .libraries import import_torch

# A module must not have the name of its function: importing it would replace the function in the package.
MODULES = {
    "TrainedLinks": "link_prediction",
    "TrainedModel": "trained",
    "armada": "disaggregated.launch",
    "bytegnn": "mini_batches",
    "compare": "comparing",
    "distdgl": "distributed",
    "distgnn": "edge_parts",
    "full": "centralized",
    "links": "link_prediction",
    "open": "opening",
    "sampled": "mini_batches",
    "sancus": "row_blocks",
    "sdt": "model_averaging",
}


def imported(name: str) -> Any:
    """Return a name of ``fastpart.train``, or say what to install."""
    import_torch()
    return getattr(importlib.import_module(f"fastpart.train.{MODULES[name]}"), name)
