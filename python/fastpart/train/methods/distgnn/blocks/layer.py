"""Row blocks as a neighbourhood. Sources and targets are the inner vertices of the part."""

from __future__ import annotations

from typing import Any, NoReturn

from torch import Tensor

from .....errors import ParameterError
from ....graphs.neighbourhood import Neighbourhood
from .blocks import Blocks
from .product import Matrix
from .staleness import Staleness


class RowBlocks(Neighbourhood):
    """The in-edges of the inner vertices of one part, for one layer.

    Parameters
    ----------
    blocks : Blocks
        The part.
    matrix : Matrix
        Its products.
    staleness : Staleness
        Decides what is broadcast.
    """

    def __init__(self, blocks: Blocks, matrix: Matrix, staleness: Staleness, remembers: bool = False) -> None:
        super().__init__()
        self._matrix, self._staleness = matrix, staleness
        self.remembers = remembers
        self.num_targets = blocks.num_own
        self.vertices = blocks.vertices
        self.source_degree = self.target_degree = blocks.degree

    def sum(self, x: Tensor) -> Tensor:
        """Return the sum over all in-edges of the whole graph."""
        return self._matrix.times(x, *self._staleness.decide(x))

    def mean(self, x: Tensor) -> Tensor:
        """Return the mean over the in-edges of each target."""
        return self.sum(x) / self.target_degree.clamp(min=1).to(x.dtype).unsqueeze(1)

    def attend(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: attention changes the weights of edges in each epoch."""
        raise ParameterError(
            "model: sancus needs layers that multiply by a constant matrix of the edges, but attention changes the "
            "weights of the edges in each epoch. Use a model without attention, or train with distgnn or sdt"
        )
