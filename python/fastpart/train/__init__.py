"""Training of graph neural networks over partitions, with torch: ``pip install 'fastpart[train]'``.

Every method reads a partition directory with features, labels and splits, and returns a :class:`TrainedModel`. ``full``
is the reference. It ignores the parts. ``links`` predicts edges, and needs no labels. ``embeddings`` does so without
an encoder, also of several relations. ``open`` returns what a folder of
a training holds. ``distdgl`` also needs DGL: ``pip install 'fastpart[dgl]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .libraries import import_torch
from .methods import METHODS, register

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

__all__ = [
    "TrainedEmbeddings",
    "TrainedLinks",
    "TrainedModel",
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
    "register",
    "sampled",
    "sancus",
    "sdt",
]


# A module must not have the name of its function: importing it would replace the function in the package.
_MODULES = {
    "TrainedEmbeddings": "facts.trained",
    "TrainedLinks": "link_prediction.trained",
    "TrainedModel": "runs.trained",
    "compare": "comparing",
    "open": "opening",
    "ray": "on_ray",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in METHODS:
        import_torch()  # takes seconds. Methods import it when they train
    module = import_module(f"{__name__}.{_MODULES.get(name, f'methods.{name}')}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return __all__
