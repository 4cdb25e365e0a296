"""The built-in models of graphs with types: R-GCN, GraphSAGE over types, R-GAT and HGT.

R-GCN: Schlichtkrull et al., "Modeling Relational Data with Graph Convolutional Networks", ESWC 2018. GraphSAGE
(Hamilton, Ying and Leskovec, NeurIPS 2017) over types: what ``to_hetero`` of PyG makes of it. HGT: Hu, Dong, Wang and
Sun, "Heterogeneous Graph Transformer", WWW 2020, section 3, without times.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...errors import ParameterError
from ..graphs.neighbourhood import dropped_by
from ..graphs.rows import Rows, TypedRows
from ..options import Options
from .gat import SLOPE
from .scores import TypedTask
from .typed import Keyed, LayerShape, RowsByType, TypedNetwork

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


class HeteroSAGE(TypedNetwork):
    """The means of the sources of each relation and the vertex itself, through one linear map each, and added.

    The first layer reads the features of each type as they are. PyG has a linear map of the vertex itself for each
    relation. It adds them up, which is one map for each type here.
    """

    def make_layer(self, shape: LayerShape, options: Options) -> nn.Module:
        """Return one layer."""
        return RelationalConvolution(shape)


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


class SourceMaps(nn.Module):
    """Keys and values of the vertices of a type."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.key, self.value = nn.Linear(width, width), nn.Linear(width, width)


class TargetMaps(nn.Module):
    """Queries of the vertices of a type, and what becomes of the messages to them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.skip = nn.Parameter(torch.ones(()))


class RelationMaps(nn.Module):
    """What a relation makes of the keys and values of its sources, for each head."""

    def __init__(self, heads: int, width: int) -> None:
        super().__init__()
        self.key, self.value = (nn.Parameter(torch.empty(heads, width, width)) for _ in range(2))
        self.prior = nn.Parameter(torch.ones(heads, 1))
        for weight in (*self.key, *self.value):
            nn.init.xavier_uniform_(weight)


class MutualAttention(nn.Module):
    """Attention of a vertex to the sources of all relations together (equations 3 to 5 of the paper).

    The rows of types that no relation leads to stay as they are.
    """

    def __init__(self, shape: LayerShape, options: Options) -> None:
        super().__init__()
        self._heads = options.heads, options.hidden
        width = options.heads * options.hidden
        sources = dict.fromkeys(source for source, _, _ in shape.relations)
        self.sources = Keyed({name: SourceMaps(width) for name in sources})
        self._types, reached = shape.types, {target for _, _, target in shape.relations}
        self.targets = Keyed({name: TargetMaps(width) for name in shape.types if name in reached})
        self.relations = Keyed({key: RelationMaps(*self._heads) for key in shape.relations})
        last = {name: nn.Linear(width, shape.out) for name in shape.types} if shape.last else {}
        self.classify = Keyed(last)

    def forward(self, rows: TypedRows, x: RowsByType) -> dict[str, Tensor]:
        """Return one row for each target, by type."""
        keys = {name: self._by_head(maps.key(x[name])) for name, maps in self.sources.items()}
        values = {name: self._by_head(maps.value(x[name])) for name, maps in self.sources.items()}
        h = {name: x[name][: rows.num_targets[name]] for name in self._types}
        for name, maps in self.targets.items():
            messages = self._messages(name, rows, self._by_head(maps.query(h[name])), keys, values)
            share = torch.sigmoid(maps.skip)
            h[name] = share * maps.out(F.gelu(messages.flatten(1))) + (1 - share) * h[name]
        return {**h, **{name: linear(h[name]) for name, linear in self.classify.items()}}

    def _by_head(self, x: Tensor) -> Tensor:
        return x.unflatten(1, self._heads)

    def _messages(
        self, name: str, rows: TypedRows, query: Tensor, keys: RowsByType, values: RowsByType
    ) -> Tensor:
        """Return the messages to the targets of a type, weighted by the softmax over the in-edges of all relations."""
        into = [
            (maps, rows.relations[key].kernel, key[0])
            for key, maps in rows.read(self.relations.items())
            if key[2] == name
        ]
        scores = []
        for maps, kernel, source in into:
            mapped = torch.einsum("nhi,hij->nhj", keys[source], maps.key)
            of_edges = (kernel.of_sources(mapped) * kernel.at(query)).sum(-1, keepdim=True)
            scores.append(of_edges * maps.prior * self._heads[1] ** -0.5)
        largest = query.new_full((len(query), self._heads[0], 1), -torch.inf)
        for (_, kernel, _), of_edges in zip(into, scores, strict=True):
            largest = torch.maximum(largest, kernel.largest(of_edges))
        total, messages = query.new_zeros(len(query), self._heads[0], 1), torch.zeros_like(query)
        for (maps, kernel, source), of_edges in zip(into, scores, strict=True):
            weights = torch.exp(of_edges - kernel.at(largest))
            mapped = torch.einsum("nhi,hij->nhj", values[source], maps.value)
            total, messages = total + kernel.total(weights), messages + kernel.weighted(mapped, weights)
        return messages / total.clamp(min=1)  # it is at least 1 where there are in-edges


class HGT(TypedNetwork):
    """The sources of all relations weighted by attention. ``hidden`` is the width of each head.

    The features of each type go through a linear map first, and those of the last layer go through another one.
    """

    projects = True

    def make_layer(self, shape: LayerShape, options: Options) -> nn.Module:
        """Return one layer."""
        return MutualAttention(shape, options)

    def width_of(self, options: Options) -> int:
        """Return the width of all heads."""
        return options.heads * options.hidden

    def width_of_edges(self, index: int) -> int:
        """Return the width of all heads, which each edge weighs, and of keys, values and messages of the sources."""
        return 4 * self.width

    def between(self, rows: TypedRows, h: RowsByType) -> dict[str, Tensor]:
        """Return the rows after dropout. The layers have a nonlinearity inside."""
        return self.dropped(rows, h)
