"""Training of graph neural networks over partitions, with torch: ``pip install 'fastpart[train]'``.

Every method reads a partition directory with features, labels and splits, and returns a :class:`TrainedModel`. ``full``
is the reference. It ignores the parts. ``links`` predicts edges, and needs no labels. ``embeddings`` does so
without an encoder, also of several relations. ``edges`` predicts labels of edges. ``open`` returns what a folder of a
training holds, and ``predict`` predicts with it. ``distdgl`` also needs DGL: ``pip install 'fastpart[dgl]'``.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from ..core.calls import no_attribute
from .plugged import import_torch
from .registry import METHODS
from .registry import register as register

# A module must not have the name of its function: importing it would replace the function in the package.
_MODULES = {
    "TrainedEdges": "methods.edges.trained",
    "TrainedEmbeddings": "methods.embeddings.trained",
    "TrainedLinks": "methods.links.trained",
    "TrainedModel": "runs.trained",
    "compare": "comparing",
    "nodes": "frames",
    "open": "opening",
    "predict": "predictions",
    "ray": "on_ray",
}

__all__ = sorted([*_MODULES, *METHODS, "register"])  # of text


def __getattr__(name: str) -> Any:
    if name == "loggers":
        return import_module(f"{__name__}.loggers")
    if name not in __all__:
        raise no_attribute(__name__, name, __all__)
    if name not in METHODS:
        import_torch()  # takes seconds. Methods import it when they train
    module = import_module(f"{__name__}.{_MODULES.get(name, f'methods.{name}')}")
    value = globals()[name] = getattr(module, name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "loggers"]


class _Methods(ModuleType):
    """The type of this module, which says what to call instead of it."""

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refuse the call."""
        raise TypeError('fp.train is a module. Call one of its methods, such as fp.train.sampled("parts")')


sys.modules[__name__].__class__ = _Methods
