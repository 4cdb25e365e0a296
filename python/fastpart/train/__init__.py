"""Training of graph neural networks over partitions, with torch and mostly DGL: ``pip install 'fastpart[train]'``.

Every method reads a partition directory with features, labels and splits, and returns a :class:`Trained`. ``full`` is
the reference that knows no parts.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .centralized import full
    from .comparing import compare
    from .distributed import distdgl
    from .edge_parts import distgnn
    from .model_averaging import sdt
    from .row_blocks import sancus
    from .trained import Trained

__all__ = ["Trained", "compare", "distdgl", "distgnn", "full", "sancus", "sdt"]

# Modules have other names than what they hold: importing one would put it in place of the function.
_MODULES = {
    "Trained": "trained",
    "compare": "comparing",
    "distdgl": "distributed",
    "distgnn": "edge_parts",
    "full": "centralized",
    "sancus": "row_blocks",
    "sdt": "model_averaging",
}

_WITHOUT_DGL = frozenset({"Trained", "compare", "distgnn", "sancus"})


def __getattr__(name: str) -> Any:
    # torch and dgl take seconds to import, and the core does without them: only who trains needs them.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .libraries import import_libraries

    import_libraries(dgl=name not in _WITHOUT_DGL)
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
