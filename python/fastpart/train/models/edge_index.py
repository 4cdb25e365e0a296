"""Models with ``forward(x, edge_index)`` or ``forward(x, edge_index, edge_attr)``, as PyG's."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from torch import Tensor, nn

from ...errors import ParameterError, arg
from ..graphs.rows import Rows


class EdgeIndexModel(nn.Module):
    """A module with ``forward(x, edge_index)``, trained over the graphs of fastpart.

    It gets all edges of a batch in every layer, as in PyG without ``trim_to_layer``.

    Attributes
    ----------
    edge_attr : bool
        Whether its third parameter is an ``edge_attr``, which gets the features of the edges. If it has a default,
        there need not be any.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        parameters = inspect.signature(model.forward).parameters
        self.edge_attr = has_edge_attr(model)
        self._needs = self.edge_attr and parameters["edge_attr"].default is inspect.Parameter.empty

    def forward(self, graphs: Sequence[Rows], x: Tensor) -> Tensor:
        """Return the logits of the targets of the last graph."""
        given, edge_attr = [graphs[0].edge_index], graphs[0].edge_attr
        if self.edge_attr and edge_attr is not None:
            given.append(edge_attr.to(x.dtype))
        elif self._needs:
            raise ParameterError(
                f"model: {type(self.model).__name__}.forward takes edge_attr. Save the partition with "
                f"{arg('edge_features')}, and train with sampled, bytegnn, armada, links, sdt or full"
            )
        logits: Tensor = self.model(x, *given)
        return logits[: graphs[-1].num_targets]


def takes_edge_index(model: nn.Module) -> bool:
    """Return whether the second parameter of the module is an ``edge_index``."""
    return list(inspect.signature(model.forward).parameters)[1:2] == ["edge_index"]


def has_edge_attr(model: nn.Module | type[nn.Module]) -> bool:
    """Return whether the third parameter of a module's forward, or of its class, is an ``edge_attr``."""
    names = list(inspect.signature(model.forward).parameters)
    return names[2 + isinstance(model, type) :][:1] == ["edge_attr"]


def takes_edge_attr(network: nn.Module) -> bool:
    """Return whether a built network takes features of edges."""
    return bool(getattr(network, "edge_attr", False))
