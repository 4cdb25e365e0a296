"""The interface between the layers of a graph neural network and a graph.

The layers of :mod:`fastpart.train.models` use :class:`Neighbourhood` alone. So the same network trains on rows in
memory (:mod:`.rows`: a graph, a part, a mini-batch), and over parts of the edges or blocks of rows
(:mod:`fastpart.train.methods.distgnn`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from ...errors import ParameterError, arg
from ...loading import dropout

Score = Callable[[Tensor, Tensor], Tensor]
"""Maps the rows of both ends of each edge, (edges, heads, ...) each, to its scores, (edges, heads, 1)."""


class Neighbourhood(ABC):
    """The in-edges of some vertices, the targets, and the ends of these edges, the sources, for one layer.

    The first sources are the targets. A layer takes rows of the sources and returns rows of the targets.

    Attributes
    ----------
    num_targets : int
        Number of targets.
    source_degree, target_degree : torch.Tensor
        In-degrees in the whole graph, int64, also if edges were cut or sampled.
    vertices : torch.Tensor or None
        Global id of each source, int64. None where sources have no identity, as in a sample.
    edge_attr : torch.Tensor or None
        Features of the in-edges, of shape (edges, ...). None if there are none here.
    remembers : bool
        Whether the rows of the sources are always the same (the features), so that their sums are computed once. Then
        it is cheaper to aggregate first and apply linear maps afterwards.
    """

    num_targets: int
    source_degree: Tensor
    target_degree: Tensor
    vertices: Tensor | None = None
    edge_attr: Tensor | None = None
    remembers = False

    def __init__(self) -> None:
        self._aggregate: tuple[Tensor, Tensor] | None = None

    def targets(self, x: Tensor) -> Tensor:
        """Return the rows of the targets among those of the sources."""
        return x[: self.num_targets]

    def ends(self, x: Tensor) -> Tensor:
        """Return the rows of the vertices that in-edges here lead to: the targets, and copies of remote targets."""
        return self.targets(x)

    def once(self, x: Tensor, make: Callable[[], Tensor]) -> Tensor:
        """Return an aggregate of the rows ``x`` that depends on no weights. If ``remembers``, it is computed once.

        Rows that a model has changed before this layer, such as by normalisation, are others in each step.
        """
        if self._aggregate is not None and self._aggregate[0] is x:
            return self._aggregate[1]
        if not self.remembers or x.requires_grad or not torch.is_grad_enabled():
            return make()
        self._aggregate = x, make().detach()
        return self._aggregate[1]

    @abstractmethod
    def mean(self, x: Tensor) -> Tensor:
        """Return the mean of the rows ``x`` over the in-edges of each target, 0 without in-edges."""

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum over all in-edges of the whole graph, or an estimate if only some of them are here."""
        return self.mean(x) * self.target_degree.to(x.dtype).unsqueeze(1)

    def propagated(self, x: Tensor) -> Tensor:
        """Return the rows times D^-1/2 (A + I) D^-1/2 at each target, where D holds the in-degrees plus 1."""
        scaled = x * inverse_roots(self.source_degree, x.dtype)
        return (self.sum(scaled) + self.targets(scaled)) * inverse_roots(self.target_degree, x.dtype)

    @abstractmethod
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
        """Return the sum of the values of the sources, weighted by attention, over the in-edges of each target.

        Parameters
        ----------
        values : torch.Tensor
            Rows of the sources, of shape (sources, heads, width).
        source, target : torch.Tensor
            Rows of the sources and of :meth:`ends`, of shape (sources, heads, ...) and (ends, heads, ...).
        score : callable
            Maps the rows of both ends of each edge, of shape (edges, heads, ...), to scores, (edges, heads, 1). The
            weights are their softmax over the edges of a target.
        drop : float
            Share of the weights that is dropped. 0 outside training.
        loops : bool
            Whether a loop at each target is one of its edges. Without it, a target without in-edges gets zeros.
        of_edges : torch.Tensor, optional
            What is added to the value of each edge, of shape (edges, heads, width).

        Returns
        -------
        torch.Tensor
            Values of shape (targets, heads, width).
        """

    def edge_rows(self, dtype: torch.dtype, *, loops: bool = False) -> Tensor:
        """Return the features of the edges that :meth:`attend` takes, of shape (edges, width).

        A loop has the mean of the in-edges of its target, zeros without any.
        """
        raise ParameterError(NO_EDGE_FEATURES)

    def sum_of_messages(self, x: Tensor, message: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the sum of messages over all in-edges, or an estimate if only some of them are here.

        Parameters
        ----------
        x : torch.Tensor
            Rows of the sources.
        message : callable
            Maps the rows of the sources of all in-edges, in the order of :meth:`edge_rows`, to messages.
        """
        raise ParameterError(NO_EDGE_FEATURES)


NO_EDGE_FEATURES = (
    "model: it takes features of edges, which are not here. Save the partition with "
    f"{arg('edge_features')}, and train with sampled, bytegnn, armada, links, sdt or full"
)


def inverse_roots(degree: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the inverse roots of degrees plus 1, as a column."""
    return (degree.to(dtype).unsqueeze(1) + 1) ** -0.5


def dropped(h: Tensor, share: float, graph: Neighbourhood) -> Tensor:
    """Apply dropout to the rows of the targets.

    The choice depends on torch's random numbers and on the id of the vertex, but not on its position or process. So
    copies of a vertex in several processes with the same random numbers drop the same entries. Vertices without ids get
    ordinary dropout.
    """
    if not share or graph.vertices is None:
        return F.dropout(h, share)
    return dropped_by(h, share, graph.targets(graph.vertices))


def dropped_by(h: Tensor, share: float, ids: Tensor) -> Tensor:
    """Apply dropout to rows. The choice depends on torch's random numbers and on the id of each row."""
    return dropout(h, share, ids, *torch.randint(-(2**63), 2**63 - 1, (2,)).tolist())
