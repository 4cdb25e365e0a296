"""Training of graph neural networks over partitions, with torch: ``pip install 'fastpart[train]'``.

Every method reads a partition directory with features, labels and splits, and returns a :class:`TrainedModel`. ``full``
is the reference. It ignores the parts. ``links`` predicts edges, and needs no labels. ``open`` returns what a folder of
a training holds. ``distdgl`` also needs DGL: ``pip install 'fastpart[dgl]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .lazy import MODULES, imported

if TYPE_CHECKING:
    from .centralized import full
    from .comparing import compare
    from .disaggregated.launch import armada
    from .distributed import distdgl
    from .edge_parts import distgnn
    from .link_prediction import TrainedLinks, links
    from .mini_batches import bytegnn, sampled
    from .model_averaging import sdt
    from .opening import open
    from .row_blocks import sancus
    from .trained import TrainedModel

__all__ = [
    "TrainedLinks",
    "TrainedModel",
    "armada",
    "bytegnn",
    "compare",
    "distdgl",
    "distgnn",
    "full",
    "links",
    "open",
    "sampled",
    "sancus",
    "sdt",
]


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = imported(name)
    return value


def __dir__() -> list[str]:
    return __all__
