"""Cluster-GCN (Chiang et al., KDD 2019, section 3.2)."""

from __future__ import annotations

from .graphsage import GraphSAGE
from .network import CLUSTER


class ClusterGCN(GraphSAGE):
    """GraphSAGE, trained on unions of clusters.

    As in the authors' code, a vertex itself and the mean of its neighbours have maps of their own, which is what the
    paper's enhanced diagonal (section 3.3) is for.
    """

    sampling = CLUSTER
