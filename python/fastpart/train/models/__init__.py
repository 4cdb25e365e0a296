"""The built-in models, and the network for ``model=``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np
import torch
from torch import nn

from ...errors import FastpartError, ParameterError
from ...runtime.reporting import describe
from .. import plugged
from ..graphs.rows import Rows, TypedRows
from ..options import Options
from ..plugged import ModelSource, checked, import_path, module_of, name_of
from .categories import Categories, WithCategories
from .gat import GAT
from .graphsage import GraphSAGE
from .network import (
    CLUSTER,
    NEIGHBOUR,
    SAINT,
    EdgeIndexModel,
    Network,
    has_edge_attr,
    takes_edge_attr,
    takes_edge_index,
)
from .relational import HGT, RGAT
from .scores import Task, TypedTask
from .typed import HeteroModel, TypedNetwork, takes_relations, two_of_each_type

__all__ = [
    "CLUSTER",
    "MODELS",
    "NEIGHBOUR",
    "SAINT",
    "TYPED_MODELS",
    "GraphSAGE",
    "Network",
    "TypedNetwork",
    "attends",
    "build",
    "example",
    "import_path",
    "is_layered",
    "is_made",
    "may_take_edges",
    "sampling",
    "takes_edge_attr",
]


def _classes(places: Mapping[str, str]) -> dict[str, Any]:
    modules = {name: place.partition(":") for name, place in places.items()}
    return {
        name: getattr(import_module(f"{__name__}.{module}"), attribute)
        for name, (module, _, attribute) in modules.items()
    }


MODELS: dict[str, type[Network]] = _classes(plugged.MODELS)
"""The built-in models by the value of ``model=``."""

TYPED_MODELS: dict[str, type[TypedNetwork]] = _classes(plugged.TYPED_MODELS)
"""The built-in models of typed graphs by the value of ``model=``."""


def build(task: Task, options: Options) -> nn.Module:
    """Return the network ``options.model``, from a call ``Model(task, options)``, or a copy if it is one already.

    A module with ``forward(x, edge_index)`` or ``forward(x, edge_index, edge_attr)`` is wrapped. So is one with
    ``forward(x_dict, edge_index_dict)`` or ``forward(x_dict, edge_index_dict, edge_attr_dict)`` for a typed graph.

    Where features hold codes of categories, every model is made for the learned rows in their place, and gets them.

    Raises
    ------
    ParameterError
        An unknown model, or the call fails or does not return a ``torch.nn.Module``, or the model is not one for typed
        graphs and the graph is, or the other way round.
    """
    _refuse_other_graph(options.model, isinstance(task, TypedTask))
    return _with_categories(_of_layers(task.embedded, options), task, options)


def _with_categories(network: nn.Module, task: Task, options: Options) -> nn.Module:
    """Let a network learn rows of categories, if the features have any."""
    if not task.categories:
        return network
    categories = Categories(task.categories)
    if not isinstance(network, Network | TypedNetwork):
        return WithCategories(network, categories)
    network.categories = categories
    if isinstance(network, TypedNetwork):
        network.input_widths = task.input_widths(options.hidden)
    return network


def _of_layers(task: Task, options: Options) -> nn.Module:
    """Return the network of rows without codes."""
    network = _made(options.model, task, options)
    if not isinstance(network, nn.Module):
        raise ParameterError(
            f"model: {options.model} returned a {type(network).__name__} instead of a torch.nn.Module"
        )
    if isinstance(task, TypedTask):
        return HeteroModel(network, task, options.hidden) if takes_relations(network) else network
    return EdgeIndexModel(network) if takes_edge_index(network) else network


def _refuse_other_graph(model: ModelSource, typed: bool) -> None:
    """Raise an error if a network is for the other kind of graph."""
    if issubclass(_type(model), Network if typed else TypedNetwork):
        kind, valid = ("has types", TYPED_MODELS) if typed else ("has no types", MODELS)
        raise ParameterError(
            f"model: the graph {kind}, and {name_of(model)} is not for such graphs. Use one of {', '.join(valid)}"
        )


def _made(model: ModelSource, task: Task, options: Options) -> Any:
    """Return what the model makes."""
    make = _class(model)
    if isinstance(make, nn.Module):
        return copy.deepcopy(make)
    try:
        return make(task, options.of_model)
    except (FastpartError, MemoryError):
        raise
    except Exception as error:  # a model of the user may raise anything
        name = getattr(make, "__name__", "Model")
        raise ParameterError(
            f"model: {model!r} cannot be made: {describe(error)}. If it takes other arguments than (task, options), "
            f"pass a function: def make(task, options): return {name}(task.features, ..., task.classes)"
        ) from error


def example(task: Task, hidden: int) -> tuple[Rows | TypedRows, Any]:
    """Return a graph of two vertices, of each type if there are types, and rows of ones."""
    if isinstance(task, TypedTask):
        return two_of_each_type(task, hidden)
    edge_attr = torch.ones(2, task.edge_features) if task.edge_features else None
    ends = np.arange(3), np.array([1, 0], np.int32)
    two = Rows(*ends, torch.ones(2, dtype=torch.int64), edge_attr=edge_attr)
    return two, torch.ones(2, task.features)


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


def is_made(model: ModelSource) -> bool:
    """Return whether a model is a network already."""
    return isinstance(_class(model), nn.Module)


def is_layered(model: ModelSource) -> bool:
    """Return whether a model has layers, so that its outputs are computed layer by layer."""
    return issubclass(_type(model), (Network, TypedNetwork))


def attends(model: ModelSource) -> bool:
    """Return whether a model computes numbers for each edge."""
    return issubclass(_type(model), (GAT, RGAT, HGT))


def may_take_edges(model: ModelSource, task: Task) -> bool:
    """Return whether a model may take features of edges. What a function returns is not known before it is made."""
    kind = _type(model)
    if isinstance(task, TypedTask):
        return bool(task.edge_widths) and getattr(kind, "edge_attr", True)
    if not task.edge_features:
        return False
    if issubclass(kind, Network):
        return kind.reads_edges
    return not issubclass(kind, nn.Module) or has_edge_attr(kind)


def _type(model: ModelSource) -> type:
    """Return the class of the networks of a model."""
    made = _class(model)
    return made if isinstance(made, type) else type(made)


def _class(model: ModelSource) -> Any:
    return _find(model) if isinstance(model, str) else model


def _find(name: str) -> Any:
    builtin: dict[str, Any] = {**MODELS, **TYPED_MODELS}
    if name in builtin:
        return builtin[name]
    checked(name)
    source, _, attribute = name.rpartition(":")
    try:
        found = getattr(module_of(source), attribute)
    except (ImportError, OSError, AttributeError, SyntaxError) as error:
        raise ParameterError(f"model: {name}: {error}") from None
    return found
