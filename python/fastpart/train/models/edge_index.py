"""Models with ``forward(x, edge_index)``, as PyG's."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from torch import Tensor, nn

from ..rows import Rows


class EdgeIndexModel(nn.Module):
    """A module with ``forward(x, edge_index)``, trained over the graphs of fastpart.

    It gets all edges of a batch in every layer, as in PyG without ``trim_to_layer``.
    """

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, graphs: Sequence[Rows], x: Tensor) -> Tensor:
        """Return the logits of the targets of the last graph."""
        logits: Tensor = self.model(x, graphs[0].edge_index)
        return logits[: graphs[-1].num_targets]


def takes_edge_index(model: nn.Module) -> bool:
    """Return whether the second parameter of the module is an ``edge_index``."""
    return list(inspect.signature(model.forward).parameters)[1:2] == ["edge_index"]
