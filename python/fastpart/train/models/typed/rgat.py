"""R-GAT: GATv2 (Brody, Alon and Yahav, ICLR 2022) for each relation, added (as the baseline of OGB's MAG240M)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ....errors import ParameterError
from ...graphs.neighbourhood import dropped_by
from ...graphs.rows import Rows, TypedRows
from ...options import Options
from ..gat import SLOPE
from ..scores import TypedTask
from .network import Keyed, LayerShape, RowsByType, TypedNetwork


class RelationAttention(nn.Module):
    """Multi-head attention of a vertex to the sources of one relation."""

    def __init__(self, source: int, target: int, edge: int, shape: tuple[int, int]) -> None:
        super().__init__()
        self.shape = shape
        out = shape[0] * shape[1]
        self.fc_src = nn.Linear(source, out, bias=False)
        self.fc_dst = nn.Linear(target, out)
        self.fc_edge = nn.Linear(edge, out, bias=False) if edge else None
        self.attn = nn.Parameter(torch.empty(1, *shape))
        gain = nn.init.calculate_gain("relu")
        for linear in filter(None, (self.fc_src, self.fc_dst, self.fc_edge)):
            nn.init.xavier_normal_(linear.weight, gain=gain)
        nn.init.xavier_normal_(self.attn, gain=gain)
        nn.init.zeros_(self.fc_dst.bias)

    def forward(
        self, relation: Rows, x: Tensor, targets: Tensor, drop: float, vertices: tuple[Tensor, Tensor]
    ) -> Tensor:
        """Return the weighted sums of the sources at each target, of shape (targets, heads, width)."""
        kernel = relation.kernel
        source, target = (each.unflatten(1, self.shape) for each in (self.fc_src(x), self.fc_dst(targets)))
        of_edges = kernel.both(source, target)
        if self.fc_edge is not None:
            if relation.edge_attr is None:
                raise ParameterError(
                    "edge_ids: the network takes features of in-edges, which this batch has not. Make the loader with "
                    "edge_ids=True"
                )
            of_edges = of_edges + self.fc_edge(relation.edge_attr.to(x.dtype)).unflatten(1, self.shape)
        scores = (F.leaky_relu(of_edges, SLOPE) * self.attn).sum(-1, keepdim=True)
        shares = kernel.softmax(scores)
        if drop:
            shares = dropped_by(shares, drop, kernel.pair_ids(*vertices))
        return kernel.weighted(source, shares)


class RelationalAttention(nn.Module):
    """Attention over each relation, and a linear map of each vertex."""

    def __init__(self, shape: LayerShape, options: Options) -> None:
        super().__init__()
        self._last, self._drop = shape.last, options.dropout
        heads = (options.heads, shape.out)
        out = shape.out if shape.last else options.heads * shape.out
        self.own = Keyed({name: nn.Linear(shape.widths[name], out) for name in shape.types})
        for linear in self.own:
            nn.init.xavier_normal_(linear.weight, gain=nn.init.calculate_gain("relu"))
        widths, edges = shape.widths, shape.edge_widths
        self.relations = Keyed(
            {
                key: RelationAttention(widths[key[0]], widths[key[2]], edges.get(key[1], 0), heads)
                for key in shape.relations
            }
        )

    def forward(self, rows: TypedRows, x: RowsByType) -> dict[str, Tensor]:
        """Return one row for each target, by type: the heads concatenated, or their mean in the last layer."""
        targets = rows.targets(x)
        h = {name: own(targets[name]) for name, own in self.own.items()}
        drop = self._drop if self.training else 0.0
        for key, attention in rows.read(self.relations.items()):
            source, _, target = key
            vertices = rows.vertices[source], rows.vertices[target][: rows.num_targets[target]]
            sums = attention(rows.relations[key], x[source], targets[target], drop, vertices)
            h[target] = h[target] + (sums.mean(1) if self._last else sums.flatten(1))
        return h


class RGAT(TypedNetwork):
    """The sources of each relation weighted by attention. ``hidden`` is the width of each head."""

    edge_attr = True

    def __init__(self, task: TypedTask, options: Options) -> None:
        super().__init__(task, options)
        self.edge_attr = bool(task.edge_widths)

    def make_layer(self, shape: LayerShape, options: Options) -> nn.Module:
        """Return one layer."""
        return RelationalAttention(shape, options)

    def width_of(self, options: Options) -> int:
        """Return the width of all heads."""
        return options.heads * options.hidden

    def width_of_edges(self, index: int) -> int:
        """Return the width of all heads, which each edge weighs, and of the sources."""
        return 3 * self.width

    def between(self, rows: TypedRows, h: RowsByType) -> dict[str, Tensor]:
        """Return the rows after ELU and dropout."""
        return self.dropped(rows, {name: F.elu(each) for name, each in h.items()})
