"""The models that come along, and how those of users are found."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from torch import nn

from ...errors import ParameterError
from ..config import ModelSource, Options
from ..scores import Task
from .clustergcn import ClusterGCN
from .gat import GAT, GATv2
from .gcn import GCN
from .gin import GIN
from .graphsage import GraphSAGE, GraphSAGEWithLoops
from .graphsaint import GraphSAINT
from .layer import Layer
from .network import CLUSTER, NEIGHBOUR, SAINT, Network
from .ngnn import NGNN
from .sgc import SGC

__all__ = ["CLUSTER", "MODELS", "NEIGHBOUR", "SAINT", "Layer", "Network", "build", "import_path", "sampling"]

MODELS: dict[str, type[Network]] = {
    "graphsage": GraphSAGE,
    "graphsage-gcn": GraphSAGEWithLoops,
    "gcn": GCN,
    "gin": GIN,
    "gat": GAT,
    "gatv2": GATv2,
    "sgc": SGC,
    "clustergcn": ClusterGCN,
    "graphsaint": GraphSAINT,
    "ngnn": NGNN,
}
"""By the name that ``model=`` takes."""


def build(task: Task, options: Options) -> nn.Module:
    """Return the network ``options.model``, made by ``Model(task, options)``.

    Raises
    ------
    ParameterError
        No such model, or it makes no ``torch.nn.Module``.
    """
    network = _class(options.model)(task, options)
    if not isinstance(network, nn.Module):
        raise ParameterError(
            f"model: {options.model} makes a {type(network).__name__}, not a torch.nn.Module"
        )
    return network


def sampling(model: ModelSource) -> str:
    """Return the kind of batches that a model is trained on: its ``sampling``, or by neighbours.

    Raises
    ------
    ParameterError
        No such model, or no such kind.
    """
    kind = getattr(_class(model), "sampling", NEIGHBOUR)
    if kind not in (NEIGHBOUR, CLUSTER, SAINT):
        raise ParameterError(
            f"model: {model}: sampling {kind!r}; valid are {NEIGHBOUR!r}, {CLUSTER!r}, {SAINT!r}"
        )
    return str(kind)


def _class(model: ModelSource) -> Any:
    return _find(model) if isinstance(model, str) else model


def _find(name: str) -> Any:
    if name in MODELS:
        return MODELS[name]
    source, colon, attribute = name.rpartition(":")
    if not colon:
        known = ", ".join(map(repr, MODELS))
        raise ParameterError(
            f"model: unknown value {name!r}; valid are {known}, or a class of yours as module:Class or file.py:Class"
        )
    try:
        module = _of_file(Path(source)) if source.endswith(".py") else importlib.import_module(source)
        return getattr(module, attribute)
    except (ImportError, OSError, AttributeError, SyntaxError) as error:
        raise ParameterError(f"model: {name}: {error}") from None


def _of_file(file: Path) -> ModuleType:
    return _executed(file.resolve(), file.stat().st_mtime_ns)


@cache
def _executed(file: Path, modified: int) -> ModuleType:
    """Execute a file, once for each time that it was modified."""
    name = f"fastpart_model_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def import_path(model: ModelSource) -> str:
    """Return the name under which another process finds the model."""
    if isinstance(model, str):
        source, _, attribute = model.rpartition(":")
        return f"{Path(source).resolve()}:{attribute}" if source.endswith(".py") else model
    module, name = getattr(model, "__module__", None), getattr(model, "__qualname__", "")
    if module == "__main__":
        module = getattr(sys.modules["__main__"], "__file__", None)
        module = module and str(Path(module).resolve())
    if not module or not name.isidentifier():
        raise ParameterError(
            "model: other processes cannot import it; put the class at the top level of a module or file"
        )
    return f"{module}:{name}"
