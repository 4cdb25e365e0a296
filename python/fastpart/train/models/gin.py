"""GIN (Xu, Hu, Leskovec and Jegelka, "How Powerful are Graph Neural Networks?", ICLR 2019, section 4.1)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..config import Options
from ..neighbourhood import Neighbourhood
from ..scores import Task
from .network import Network


class Isomorphism(nn.Module):
    """The sum of the neighbours, and the vertex itself with a learned weight, through two linear maps.

    Between them each row is normalised, because sums grow with the degree. The paper normalises the batch instead, but
    then the result for a vertex would depend on the other vertices in the process.
    """

    takes_means = True

    def __init__(self, width: int, hidden: int, out: int) -> None:
        super().__init__()
        self.epsilon = nn.Parameter(torch.zeros(()))
        self.inner = nn.Linear(width, hidden)
        self.norm = nn.LayerNorm(hidden)
        self.outer = nn.Linear(hidden, out)

    def forward(self, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Return one row for each target."""
        neighbours = graph.once(x, lambda: graph.sum(x))
        h = self.inner((1 + self.epsilon) * graph.targets(x) + neighbours)
        return self.outer(F.relu(self.norm(h)))


class GIN(Network):
    """Sums of neighbours."""

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return Isomorphism(width, options.hidden, out)
