"""GraphSAINT (Zeng et al., ICLR 2020, section 3)."""

from __future__ import annotations

from .graphsage import GraphSAGE
from .network import SAINT


class GraphSAINT(GraphSAGE):
    """GraphSAGE, trained on graphs sampled by random walks.

    The edges of a sample have weights that make the mean unbiased.
    """

    sampling = SAINT
