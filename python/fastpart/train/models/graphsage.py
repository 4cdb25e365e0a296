"""GraphSAGE with the mean aggregator (Hamilton, Ying and Leskovec, NeurIPS 2017)."""

from __future__ import annotations

import dgl.nn.pytorch as layers
from torch import nn

from ..config import Options
from ..scores import Task
from .network import Network


class GraphSAGE(Network):
    """The mean of the neighbours and the vertex itself, through one linear map each."""

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return layers.SAGEConv(width, out, "mean")
