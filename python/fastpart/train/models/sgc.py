"""SGC (Wu et al., "Simplifying Graph Convolutional Networks", ICML 2019, section 2.2)."""

from __future__ import annotations

from torch import Tensor, nn

from ..options import Options
from .gcn import Convolution, Propagation
from .network import Network
from .scores import Task


class SGC(Network):
    """One propagation of the features per layer, and one linear map. ``hidden`` has no effect."""

    def make_layer(self, index: int, width: int, out: int, task: Task, options: Options) -> nn.Module:
        """Return one propagation, the last with the linear map."""
        return Convolution(task.features, out) if index == options.layers - 1 else Propagation()

    def between(self, h: Tensor, graph: object) -> Tensor:
        """Return the rows unchanged. There is no nonlinearity between propagations."""
        return h
