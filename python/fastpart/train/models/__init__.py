"""The models that come along, and the network that ``model=`` names."""

from __future__ import annotations

from typing import Any

from torch import nn

from ...errors import ParameterError
from ..config import Options
from ..model_source import ModelSource, import_path, module_of
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
        return getattr(module_of(source), attribute)
    except (ImportError, OSError, AttributeError, SyntaxError) as error:
        raise ParameterError(f"model: {name}: {error}") from None
