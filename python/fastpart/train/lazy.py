"""The public names of training, imported on first use.

torch takes seconds to import, and only training needs it.
"""

from __future__ import annotations

import importlib
from typing import Any

from .libraries import import_torch
from .trainer import ROOMS

# A module must not have the name of its function: importing it would replace the function in the package.
MODULES = {
    "TrainedEmbeddings": "facts.trained",
    "TrainedLinks": "link_prediction.trained",
    "TrainedModel": "runs.trained",
    "Trainer": "trainer",
    "compare": "comparing",
    "open": "opening",
    "ray": "on_ray",
    **{name: f"methods.{name}" for name in ROOMS},
}

_WITHOUT_TORCH = {"Trainer", *ROOMS}
"""What is described without torch. It is imported when the training begins."""


def imported(name: str) -> Any:
    """Return a name of ``fastpart.train``, or say what to install."""
    if name not in _WITHOUT_TORCH:
        import_torch()
    return getattr(importlib.import_module(f"fastpart.train.{MODULES[name]}"), name)
