"""The public names of training, imported when somebody asks for them.

torch and dgl take seconds to import, and the core does without them: only who trains needs them.
"""

from __future__ import annotations

import importlib
from typing import Any

from .libraries import import_libraries

# Modules have other names than what they hold: importing one would put it in place of the function.
MODULES = {
    "Trained": "trained",
    "compare": "comparing",
    "distdgl": "distributed",
    "distgnn": "edge_parts",
    "full": "centralized",
    "sancus": "row_blocks",
    "sdt": "model_averaging",
}

_WITHOUT_DGL = frozenset({"Trained", "compare", "distgnn", "sancus"})


def imported(name: str) -> Any:
    """Return what ``fastpart.train`` has under this name, or say what to install."""
    import_libraries(dgl=name not in _WITHOUT_DGL)
    return getattr(importlib.import_module(f"fastpart.train.{MODULES[name]}"), name)
