"""Training of graph neural networks over partitions, with torch: ``pip install 'fastpart[train]'``.

Every method reads a partition directory with features, labels and splits, and returns a :class:`TrainedModel`. ``full``
is the reference. It ignores the parts. ``links`` predicts edges, and needs no labels. ``embeddings`` does so without
an encoder, also of several relations. ``open`` returns what a folder of
a training holds. ``distdgl`` also needs DGL: ``pip install 'fastpart[dgl]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .lazy import MODULES, imported

if TYPE_CHECKING:
    from .comparing import compare
    from .facts.trained import TrainedEmbeddings
    from .link_prediction.trained import TrainedLinks
    from .methods.armada import armada
    from .methods.bytegnn import bytegnn
    from .methods.distdgl import distdgl
    from .methods.distgnn import distgnn
    from .methods.embeddings import embeddings
    from .methods.full import full
    from .methods.links import links
    from .methods.sampled import sampled
    from .methods.sancus import sancus
    from .methods.sdt import sdt
    from .on_ray import ray
    from .opening import open
    from .runs.trained import TrainedModel
    from .trainer import Trainer

__all__ = [
    "TrainedEmbeddings",
    "TrainedLinks",
    "TrainedModel",
    "Trainer",
    "armada",
    "bytegnn",
    "compare",
    "distdgl",
    "distgnn",
    "embeddings",
    "full",
    "links",
    "open",
    "ray",
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
