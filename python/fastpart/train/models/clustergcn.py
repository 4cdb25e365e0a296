"""Cluster-GCN (Chiang et al., KDD 2019, section 3.2)."""

from __future__ import annotations

from .graphsage import GraphSAGE
from .network import CLUSTER


class ClusterGCN(GraphSAGE):
    """GraphSAGE, trained on unions of clusters.

    As in the authors' code, a vertex and the mean of its neighbours have separate linear maps. This serves the purpose
    of the paper's enhanced diagonal (section 3.3).
    """

    sampling = CLUSTER
