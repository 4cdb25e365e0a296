"""R-GCN (Schlichtkrull et al., "Modeling Relational Data with Graph Convolutional Networks", ESWC 2018)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ...graphs.rows import TypedRows
from ...options import Options
from .network import Keyed, LayerShape, RowsByType, TypedNetwork

BASES = 30
"""Most weight matrices that a layer learns for its relations. Those of more relations are sums of so many."""


class RelationalConvolution(nn.Module):
    """The mean of the sources of each relation through a linear map of its own, and a linear map of each vertex.

    That is equation 2 of the paper, where the vertices of each type have a self-loop of their own.
    """

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.own = Keyed({name: nn.Linear(shape.widths[name], shape.out) for name in shape.types})
        self.relations = Keyed(
            {key: nn.Linear(shape.widths[key[0]], shape.out, bias=False) for key in shape.relations}
        )
        gain = nn.init.calculate_gain("relu")
        for linear in (*self.own, *self.relations):
            nn.init.xavier_uniform_(linear.weight, gain=gain)

    def forward(self, rows: TypedRows, x: RowsByType) -> dict[str, Tensor]:
        """Return one row for each target, by type."""
        h = {name: own(x[name][: rows.num_targets[name]]) for name, own in self.own.items()}
        for key, linear in rows.read(self.relations.items()):
            h[key[2]] = h[key[2]] + linear(rows.relations[key].mean(x[key[0]]))
        return h


class BasisConvolution(nn.Module):
    """As :class:`RelationalConvolution`, with the weights of each relation a sum of learned bases (equation 3)."""

    def __init__(self, shape: LayerShape) -> None:
        super().__init__()
        self.own = Keyed({name: nn.Linear(shape.widths[name], shape.out) for name in shape.types})
        width = shape.widths[shape.types[0]]
        self.bases = nn.Parameter(torch.empty(BASES, shape.out, width))
        self.coefficients = nn.Parameter(torch.empty(len(shape.relations), BASES))
        self._relations = shape.relations
        gain = nn.init.calculate_gain("relu")
        for weight in (*(own.weight for own in self.own), *self.bases):
            nn.init.xavier_uniform_(weight, gain=gain)
        nn.init.normal_(self.coefficients, std=BASES**-0.5)

    def forward(self, rows: TypedRows, x: RowsByType) -> dict[str, Tensor]:
        """Return one row for each target, by type."""
        h = {name: own(x[name][: rows.num_targets[name]]) for name, own in self.own.items()}
        weights = (self.coefficients @ self.bases.flatten(1)).unflatten(1, self.bases.shape[1:])
        for key, weight in rows.read(zip(self._relations, weights, strict=True)):
            h[key[2]] = h[key[2]] + rows.relations[key].mean(x[key[0]]) @ weight.T
        return h


class RGCN(TypedNetwork):
    """The means of the sources of each relation and the vertex itself, through one linear map each.

    The features of each type go through a linear map to ``hidden`` numbers first.
    """

    projects = True

    def make_layer(self, shape: LayerShape, options: Options) -> nn.Module:
        """Return one layer."""
        return BasisConvolution(shape) if len(shape.relations) > BASES else RelationalConvolution(shape)
