"""Models with ``forward(x_dict, edge_index_dict)``, as those of PyG over types and the results of its ``to_hetero``."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ....errors import ParameterError, arg
from ...graphs.rows import Rows, TypedRows
from ..scores import TypedTask

_EDGES = ("edge_index_dict", "edge_index")
_ATTRIBUTES = ("edge_attr_dict", "edge_attr")


class HeteroModel(nn.Module):
    """A module with ``forward(x_dict, edge_index_dict)``, trained over the graphs of fastpart.

    It gets all edges of a batch in every layer, as in PyG without ``trim_to_layer``. It returns rows by type, or those
    of the target.

    Attributes
    ----------
    edge_attr : bool
        Whether its third parameter is an ``edge_attr_dict``, which gets the features of the edges by relation. If it
        has a default, there need not be any.
    """

    def __init__(self, model: nn.Module, task: TypedTask, hidden: int) -> None:
        super().__init__()
        self.model, self._target = model, task.target
        third = list(inspect.signature(model.forward).parameters.values())[2:3]
        self.edge_attr = bool(third) and third[0].name in _ATTRIBUTES
        self._needs = self.edge_attr and third[0].default is inspect.Parameter.empty
        if any(is_lazy(weight) for weight in model.parameters()):
            rows, x = two_of_each_type(task, hidden)
            with torch.no_grad():
                self([rows], x)

    def forward(self, graphs: Sequence[TypedRows], x: Mapping[str, Tensor]) -> Tensor:
        """Return the logits of the targets of the last graph."""
        relations = graphs[0].relations
        given: list[Any] = [dict(x), {key: of.edge_index for key, of in relations.items()}]
        if self.edge_attr:
            dtype = x[self._target].dtype
            features = {
                key: of.edge_attr.to(dtype) for key, of in relations.items() if of.edge_attr is not None
            }
            if self._needs and not features:
                raise ParameterError(
                    f"model: {type(self.model).__name__}.forward takes features of edges, but the relations have none. "
                    f"Save the partition with {arg('edge_features')}"
                )
            given += [features] if features else []
        outputs = self.model(*given)
        logits: Tensor = outputs[self._target] if isinstance(outputs, Mapping) else outputs
        return logits[: graphs[-1].num_targets[self._target]]


def takes_relations(model: nn.Module) -> bool:
    """Return whether the second parameter of the module has the edges by relation, or may have them."""
    return any(name in _EDGES for name in list(inspect.signature(model.forward).parameters)[1:2])


def two_of_each_type(task: TypedTask, hidden: int) -> tuple[TypedRows, dict[str, Tensor]]:
    """Return a graph of two vertices of each type and one in-edge of each relation, and rows of ones."""
    indptr, indices = np.array([0, 1, 1], np.int32), np.array([1], np.int32)
    relations = {}
    for key in task.edge_types:
        width = task.edge_widths.get(key[1])
        edge_attr = None if width is None else torch.ones(1, width)
        relations[key] = Rows(indptr, indices, sources=2, edge_attr=edge_attr)
    two = dict.fromkeys(task.types, 2)
    vertices = {name: torch.arange(2) for name in task.types}
    x = {name: torch.ones(2, width) for name, width in task.input_widths(hidden).items()}
    return TypedRows(two, two, relations, vertices), x
