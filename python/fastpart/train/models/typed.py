"""The base of networks over types: a stack of layers, each over the in-edges of all relations; and modules as PyG's."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ...errors import ParameterError, arg
from ...partitions.types import EdgeKey
from ..graphs.rows import Rows, TypedRows
from ..options import Options
from .categories import Categories
from .network import NEIGHBOUR
from .scores import TypedTask

Key = TypeVar("Key", str, EdgeKey)
Part = TypeVar("Part", bound=nn.Module)

RowsByType = Mapping[str, Tensor]
"""RowsByType by type."""


@dataclass(frozen=True)
class LayerShape:
    """What a layer reads and returns.

    Attributes
    ----------
    widths : mapping of int
        Width of the rows that it reads, by type.
    types : tuple of str
        The types whose rows it returns.
    relations : tuple of tuple
        The relations whose targets are of these types.
    edge_widths : mapping of int
        Width of the features of in-edges, by the name of the relation.
    out : int
        Width of the rows that it returns, with attention that of each head.
    last : bool
        Whether it is the last layer.
    """

    widths: Mapping[str, int]
    types: tuple[str, ...]
    relations: tuple[EdgeKey, ...]
    edge_widths: Mapping[str, int]
    out: int
    last: bool


class Keyed(nn.ModuleList, Generic[Key, Part]):
    """Modules by type or by relation. Unlike ``torch.nn.ModuleDict`` it takes any name."""

    def __init__(self, modules: Mapping[Key, Part]) -> None:
        super().__init__(modules.values())
        self._keys: dict[Key, int] = {key: place for place, key in enumerate(modules)}

    def of(self, key: Key) -> Part:
        """Return the module of a type or a relation."""
        return self[self._keys[key]]

    def items(self) -> Iterator[tuple[Key, Part]]:
        """Yield types or relations and their modules."""
        return zip(self._keys, self, strict=True)


class TypedNetwork(nn.Module):
    """A stack of layers over types with ReLU and dropout between them.

    Subclasses define a layer. ``forward`` takes one :class:`~fastpart.train.graphs.rows.TypedRows` for each
    layer. A layer returns the rows of the types that the next ones need: the last one those of the targets of the task.

    Your own model may be any ``nn.Module`` with this ``forward``. With ``layers`` and ``layer`` it can be evaluated one
    layer and one part at a time.

    Attributes
    ----------
    projects : bool
        Whether a linear map of each type brings all rows to ``hidden`` numbers (per head) before the first layer.
    edge_attr : bool
        Whether it takes the features of in-edges. The class says whether it may.
    types : list of tuple of str
        The types whose rows each layer reads, the first layer first, and those that the last one returns.
    input_widths : dict of int
        Width of the rows of each type that the first layer reads.
    width : int
        Width of the rows between layers.
    categories : torch.nn.Module or None
        Puts learned rows in place of codes of categories before the first layer, if the features have any.
    """

    sampling = NEIGHBOUR
    projects = False
    edge_attr = False

    def __init__(self, task: TypedTask, options: Options) -> None:
        super().__init__()
        self.dropout, self._target = options.dropout, task.target
        self.categories: Categories | None = None
        self.types = task.types_by_layer(options.layers)
        widths = self.input_widths = task.input_widths(options.hidden)
        hidden = self.width = self.width_of(options)
        if self.projects:
            learned = [name for name in task.learned if not task.widths[name] and widths[name] == hidden]
            self.projections = Keyed(
                {
                    name: nn.Identity() if name in learned else nn.Linear(widths[name], hidden)
                    for name in self.types[0]
                }
            )
            widths = dict.fromkeys(task.types, hidden)
        self.layers = nn.ModuleList()
        for index in range(options.layers):
            last = index == options.layers - 1
            types = self.types[index + 1]
            relations = tuple(key for key in task.edge_types if key[2] in types)
            out = task.classes if last else options.hidden
            shape = LayerShape(widths, types, relations, task.edge_widths, out, last)
            self.layers.append(self.make_layer(shape, options))
            widths = dict.fromkeys(task.types, hidden)

    def make_layer(self, shape: LayerShape, options: Options) -> nn.Module:
        """Return a layer.

        It is called with :class:`~fastpart.train.graphs.rows.TypedRows` and rows by type, and returns rows by
        type.
        """
        raise TypeError(f"{type(self).__name__}: a network must define the method make_layer")

    def width_of(self, options: Options) -> int:
        """Return the width of the rows between layers."""
        return options.hidden

    def width_of_edges(self, index: int) -> int:
        """Return how many numbers the layer ``index`` computes for each in-edge, beside the rows of its sources."""
        return 0

    def layer(self, index: int, rows: TypedRows, x: RowsByType) -> dict[str, Tensor]:
        """Apply the layer ``index`` to the rows of the sources, and return one row for each target, by type."""
        if index == 0 and self.categories is not None:
            x = self.categories(x)
        if self.projects and index == 0:
            x = {name: project(x[name]) for name, project in self.projections.items()}
        h: dict[str, Tensor] = self.layers[index](rows, x)
        return h if index == len(self.layers) - 1 else self.between(rows, h)

    def between(self, rows: TypedRows, h: RowsByType) -> dict[str, Tensor]:
        """Return the input of the next layer, given the output of a layer."""
        return self.dropped(rows, {name: F.relu(each) for name, each in h.items()})

    def dropped(self, rows: TypedRows, h: RowsByType) -> dict[str, Tensor]:
        """Apply dropout to the output of a layer, in training."""
        return rows.dropped(h, self.dropout) if self.training else dict(h)

    def encode(self, graphs: Sequence[TypedRows], x: RowsByType) -> dict[str, Tensor]:
        """Return the rows of all targets of the last graph, by the types that the task asks for."""
        for index, rows in enumerate(graphs):
            x = self.layer(index, rows, x)
        return dict(x)

    def forward(self, graphs: Sequence[TypedRows], x: RowsByType) -> Tensor:
        """Return the logits of the targets of the last graph."""
        return self.encode(graphs, x)[self._target]


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
