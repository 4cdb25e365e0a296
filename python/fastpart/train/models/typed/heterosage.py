"""GraphSAGE (Hamilton, Ying and Leskovec, NeurIPS 2017) over types: what ``to_hetero`` of PyG makes of it."""

from __future__ import annotations

from torch import nn

from ...options import Options
from .network import LayerShape, TypedNetwork
from .rgcn import RelationalConvolution


class HeteroSAGE(TypedNetwork):
    """The means of the sources of each relation and the vertex itself, through one linear map each, and added.

    The first layer reads the features of each type as they are. PyG has a linear map of the vertex itself for each
    relation. It adds them up, which is one map for each type here.
    """

    def make_layer(self, shape: LayerShape, options: Options) -> nn.Module:
        """Return one layer."""
        return RelationalConvolution(shape)
