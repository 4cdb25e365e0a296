"""Rows of an adjacency in memory as a neighbourhood: a whole graph, a part with its halo, or a mini-batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .kernels import Ids, Kernel, with_loops
from .neighbourhood import Neighbourhood


class Rows(Neighbourhood):
    """The in-edges of the first vertices, the targets.

    Parameters
    ----------
    indptr, indices : numpy.ndarray
        Where the in-edges of each target begin, and the source of each in-edge. Integers.
    degree : torch.Tensor
        In-degree of each source in the whole graph, int64.
    vertices : torch.Tensor, optional
        Global id of each source, int64.
    weights : torch.Tensor, optional
        Factors of the edges in means, float32. Default: 1.
    """

    def __init__(
        self,
        indptr: Ids,
        indices: Ids,
        degree: Tensor,
        vertices: Tensor | None = None,
        weights: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.indptr, self.indices, self.weights = indptr, indices, weights
        self.num_targets = len(indptr) - 1
        self.source_degree, self.target_degree = degree, degree[: self.num_targets]
        self.vertices = vertices
        self._kernel = Kernel(indptr, indices, len(degree), degree.device, weights)

    def first(self, targets: int, sources: int | None = None) -> Rows:
        """Return the rows of the first targets. They need no more than the first ``sources``."""
        end = int(self.indptr[targets])
        weights = None if self.weights is None else self.weights[:end]
        vertices = None if self.vertices is None else self.vertices[:sources]
        return Rows(
            self.indptr[: targets + 1], self.indices[:end], self.source_degree[:sources], vertices, weights
        )

    def with_weights(self, weights: Tensor) -> Rows:
        """Return the same rows with factors of the edges."""
        return Rows(self.indptr, self.indices, self.source_degree, self.vertices, weights)

    @cached_property
    def edge_index(self) -> Tensor:
        """Source and target of each in-edge, int64 of shape (2, edges), as the layers of PyG take them."""
        targets = np.repeat(np.arange(self.num_targets), np.diff(self.indptr))
        ends = np.stack([self.indices.astype(np.int64), targets])
        return torch.from_numpy(ends).to(self.source_degree.device)

    @cached_property
    def _counts(self) -> Tensor:
        counts = torch.from_numpy(np.diff(self.indptr).astype(np.int64))
        return counts.clamp(min=1).unsqueeze(1).to(self.source_degree.device)

    @cached_property
    def _looped(self) -> Kernel:
        rows = with_loops(self.indptr, self.indices, self.num_targets)
        return Kernel(*rows, len(self.source_degree), self.source_degree.device)

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the in-edges of each target."""
        return self._kernel.summed(x) / self._counts.to(x.dtype)

    def attend(
        self, values: Tensor, source: Tensor, target: Tensor, score: Callable[[Tensor], Tensor], drop: float
    ) -> Tensor:
        """Return the sums weighted by attention."""
        kernel = self._looped
        scores = score(kernel.both(source, target))
        weights = torch.exp(scores - kernel.at(kernel.largest(scores)))
        shares = weights / kernel.at(kernel.total(weights))
        return kernel.weighted(values, F.dropout(shares, drop))
