"""The built-in models, and the network for ``model=``."""

from __future__ import annotations

from typing import Any

from torch import nn

from ...errors import FastpartError, ParameterError
from ...runtime.reporting import describe
from ..config import Options
from ..model_source import ModelSource, checked, import_path, module_of, refuse_network
from ..scores import Task
from .clustergcn import ClusterGCN
from .edge_index import EdgeIndexModel, takes_edge_attr, takes_edge_index
from .gat import GAT, GATv2
from .gcn import GCN
from .gin import GIN
from .graphsage import GraphSAGE, GraphSAGEWithLoops
from .graphsaint import GraphSAINT
from .network import CLUSTER, NEIGHBOUR, SAINT, Network
from .ngnn import NGNN
from .sgc import SGC

__all__ = [
    "CLUSTER",
    "MODELS",
    "NEIGHBOUR",
    "SAINT",
    "Network",
    "attends",
    "build",
    "import_path",
    "is_layered",
    "sampling",
    "takes_edge_attr",
]

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
"""The built-in models by the value of ``model=``."""


def build(task: Task, options: Options) -> nn.Module:
    """Return the network ``options.model``, from a call ``Model(task, options)``.

    A module with ``forward(x, edge_index)`` or ``forward(x, edge_index, edge_attr)`` is wrapped.

    Raises
    ------
    ParameterError
        An unknown model, or the call fails or does not return a ``torch.nn.Module``.
    """
    network = _made(options.model, task, options)
    if not isinstance(network, nn.Module):
        raise ParameterError(
            f"model: {options.model} returned a {type(network).__name__} instead of a torch.nn.Module"
        )
    return EdgeIndexModel(network) if takes_edge_index(network) else network


def _made(model: ModelSource, task: Task, options: Options) -> Any:
    """Return what the model makes."""
    make = _class(model)
    try:
        return make(task, options)
    except (FastpartError, MemoryError):
        raise
    except Exception as error:  # a model of the user may raise anything
        name = getattr(make, "__name__", "Model")
        raise ParameterError(
            f"model: {model!r} cannot be made: {describe(error)}. If it takes other arguments than (task, options), "
            f"pass a function: def make(task, options): return {name}(task.features, ..., task.classes)"
        ) from error


def sampling_of(model: ModelSource) -> str:
    """Return the kind of batches of a model: its attribute ``sampling``, by default neighbours.

    Raises
    ------
    ParameterError
        An unknown model or sampling.
    """
    found = getattr(_class(model), "sampling", NEIGHBOUR)
    if found not in (NEIGHBOUR, CLUSTER, SAINT):
        raise ParameterError(
            f"model: {model}: unknown sampling {found!r}. Valid values are {NEIGHBOUR!r}, {CLUSTER!r}, {SAINT!r}"
        )
    return str(found)


def is_layered(model: ModelSource) -> bool:
    """Return whether a model is a :class:`Network`, so that its outputs are computed layer by layer."""
    made = _class(model)
    return isinstance(made, type) and issubclass(made, Network)


def attends(model: ModelSource) -> bool:
    """Return whether a model computes numbers for each edge."""
    made = _class(model)
    return isinstance(made, type) and issubclass(made, GAT)


def _class(model: ModelSource) -> Any:
    return _find(model) if isinstance(model, str) else model


def _find(name: str) -> Any:
    if name in MODELS:
        return MODELS[name]
    checked(name)
    source, _, attribute = name.rpartition(":")
    try:
        found = getattr(module_of(source), attribute)
    except (ImportError, OSError, AttributeError, SyntaxError) as error:
        raise ParameterError(f"model: {name}: {error}") from None
    refuse_network(found)
    return found
