"""HGT (Hu, Dong, Wang and Sun, "Heterogeneous Graph Transformer", WWW 2020, section 3), without times."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...graphs.rows import TypedRows
from ...options import Options
from .network import Keyed, LayerShape, RowsByType, TypedNetwork


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
