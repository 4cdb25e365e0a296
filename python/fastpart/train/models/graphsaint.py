"""GraphSAINT (Zeng et al., ICLR 2020, section 3)."""

from __future__ import annotations

from .graphsage import GraphSAGE
from .network import SAINT


class GraphSAINT(GraphSAGE):
    """GraphSAGE, trained on graphs that random walks sample.

    The edges of these have weights, which the mean takes into account, so that it is right in expectation.
    """

    sampling = SAINT
