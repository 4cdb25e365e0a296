"""GraphSAGE (Hamilton, Ying and Leskovec, NeurIPS 2017, section 3.3), and the networks over its layers.

Cluster-GCN (Chiang et al., KDD 2019, section 3.2) and GraphSAINT (Zeng et al., ICLR 2020, section 3) differ in what
they are trained on, NGNN (Song, Ma, Ma and Wu, "Network In Graph Neural Network", 2021, section 3.1) in its layers.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..graphs.neighbourhood import Neighbourhood
from ..options import Options
from .network import CLUSTER, SAINT, Network
from .scores import Task


class SAGE(nn.Module):
    """The mean of the neighbours and the vertex itself, through one linear map each."""

    takes_means = True

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.fc_neigh = nn.Linear(width, out, bias=False)
        self.fc_self = nn.Linear(width, out)
        gain = nn.init.calculate_gain("relu")
        nn.init.xavier_uniform_(self.fc_self.weight, gain=gain)
        nn.init.xavier_uniform_(self.fc_neigh.weight, gain=gain)

    def forward(self, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Return one row for each target."""
        return self.fc_self(graph.targets(x)) + mapped_mean(self.fc_neigh, graph, x)


class SAGEWithLoop(nn.Module):
    """The mean of the neighbours with the vertex among them, through one linear map: the paper's GCN aggregator."""

    takes_means = True

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.fc_neigh = nn.Linear(width, out, bias=False)
        self.bias = nn.Parameter(torch.zeros(out))
        nn.init.xavier_uniform_(self.fc_neigh.weight, gain=nn.init.calculate_gain("relu"))

    def forward(self, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Return one row for each target."""
        degree = graph.target_degree.to(x.dtype).unsqueeze(1)
        own = self.fc_neigh(graph.targets(x))
        return (mapped_mean(self.fc_neigh, graph, x) * degree + own) / (degree + 1) + self.bias


def mapped_mean(linear: nn.Linear, graph: Neighbourhood, x: Tensor) -> Tensor:
    """Return the mean over the neighbours, through a linear map without bias. The shorter rows are aggregated."""
    if graph.remembers or linear.in_features <= linear.out_features:
        mean: Tensor = linear(graph.once(x, lambda: graph.mean(x)))
        return mean
    return graph.mean(linear(x))


class GraphSAGE(Network):
    """The mean of the neighbours and the vertex itself, through one linear map each."""

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return SAGE(width, out)


class GraphSAGEWithLoops(Network):
    """The mean of the neighbours and the vertex itself, through one linear map for both."""

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return SAGEWithLoop(width, out)


class ClusterGCN(GraphSAGE):
    """GraphSAGE, trained on unions of clusters.

    As in the authors' code, a vertex and the mean of its neighbours have separate linear maps. This serves the purpose
    of the paper's enhanced diagonal (section 3.3).
    """

    sampling = CLUSTER


class GraphSAINT(GraphSAGE):
    """GraphSAGE, trained on graphs sampled by random walks.

    The edges of a sample have weights that make the mean unbiased.
    """

    sampling = SAINT


class DeepSAGE(nn.Module):
    """A layer of GraphSAGE with an additional nonlinear layer inside."""

    takes_means = True

    def __init__(self, width: int, hidden: int, out: int) -> None:
        super().__init__()
        self.convolution = SAGE(width, hidden)
        self.linear = nn.Linear(hidden, out)

    def forward(self, graph: Neighbourhood, x: Tensor) -> Tensor:
        """Return one row for each target."""
        return self.linear(F.relu(self.convolution(graph, x)))


class NGNN(Network):
    """GraphSAGE with deeper layers over the same neighbourhoods."""

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one layer."""
        return DeepSAGE(width, options.hidden, out)
