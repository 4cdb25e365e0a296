"""A part of the edges as a neighbourhood: sums over the edges here, and totals over all copies."""

from __future__ import annotations

import torch
from torch import Tensor

from ....graphs.kernels import Kernel, with_loops
from ....graphs.neighbourhood import Neighbourhood, Score
from ..part import Tools
from .copies import Copies
from .totals import Totals


class Edges:
    """The edges of a part, for all layers."""

    def __init__(self, copies: Copies, tools: Tools) -> None:
        self.copies, self.clock, self._device = copies, tools.clock, tools.device
        self._kernels: dict[int, Kernel] = {}

    def kernel(self, loops: int = 0) -> Kernel:
        """Return the sums over the edges, and over a loop at each of the first so many copies."""
        if loops not in self._kernels:
            rows = self.copies.indptr, self.copies.indices
            rows = with_loops(*rows, loops) if loops else rows
            self._kernels[loops] = Kernel(*rows, len(self.copies.vertices), self._device)
        return self._kernels[loops]


class EdgeLayer(Neighbourhood):
    """The copies of vertices in one part, for one layer. Targets are all copies, in the last layer only the roots."""

    def __init__(
        self, edges: Edges, totals: Totals, random: torch.Generator, *, last: bool, remembers: bool
    ) -> None:
        super().__init__()
        copies = edges.copies
        self._edges, self._totals, self._random, self._last = edges, totals, random, last
        self.remembers = remembers
        self.num_targets = copies.num_own if last else len(copies.vertices)
        self.vertices = copies.vertices
        self.source_degree, self.target_degree = copies.degree, copies.degree[: self.num_targets]

    def ends(self, x: Tensor) -> Tensor:
        """Return all rows, because in-edges also lead to leaves."""
        return x

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the known in-edges."""
        included = self._totals.degree[: self.num_targets].clamp(min=1).to(x.dtype)
        return self._total(x) / included.unsqueeze(1)

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum over all in-edges, or an estimate of it from the known ones."""
        return self._total(x) if self._totals.complete else super().sum(x)

    def _total(self, x: Tensor) -> Tensor:
        total = self._totals.total(self._edges.kernel().summed(x, self._edges.clock), self._last)
        return total[: self.num_targets]

    def attend(
        self,
        values: Tensor,
        source: Tensor,
        target: Tensor,
        score: Score,
        drop: float,
        *,
        loops: bool = True,
        of_edges: Tensor | None = None,
    ) -> Tensor:
        """Return the sums weighted by attention. Numerators and denominators of the softmax are separate totals."""
        copies = self._edges.copies  # a loop at each root is one for each vertex of the graph
        looped = copies.num_own if self._totals.complete else len(copies.vertices)
        kernel = self._edges.kernel(looped if loops else 0)
        scores = score(kernel.of_sources(source), kernel.at(target))
        largest = self._totals.largest(kernel.largest(scores))
        weights = torch.exp(scores - kernel.at(largest))
        below = kernel.total(weights)
        above = kernel.weighted(values, self._dropped(weights, drop), of_edges)
        heads, width = values.shape[1:]
        both = self._totals.total(torch.cat([above, below], 2).flatten(1), self._last)[: self.num_targets]
        above, below = both.view(-1, heads, width + 1).split([width, 1], 2)
        # Without loops a vertex may have no edges, and its denominator is 0.
        return above / (below if loops else below.clamp(min=torch.finfo(below.dtype).tiny))

    def _dropped(self, weights: Tensor, share: float) -> Tensor:
        # Every edge is in one process only, so processes need not agree on random numbers.
        if not share:
            return weights
        mask = torch.empty_like(weights).bernoulli_(1 - share, generator=self._random)
        return weights * mask / (1 - share)
