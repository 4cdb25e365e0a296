"""Unions of clusters (Chiang et al., "Cluster-GCN", KDD 2019, algorithm 1).

SPRING partitions the graph into clusters once. Each epoch puts them into groups at random. Each step trains on the
subgraph that one group induces. ``batch_size`` is the mean number of training vertices in a group.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from ... import partitioners
from ...graph import open_graph
from ..config import Options
from ..data import LocalGraph
from ..sampling import induced
from .batch import Batch, size_of_batches

CLUSTERS = 10
"""Clusters per group. With several, the edges between clusters take part, too (section 3.2)."""

VERTICES = 50
"""Least number of vertices of a cluster. Smaller ones would have hardly any edges inside."""


def batches(local: LocalGraph, options: Options, generator: torch.Generator) -> Iterator[Batch]:
    """Yield the batches of one epoch."""
    seeds = local.splits["train"]
    if not len(seeds):
        return
    groups = -(-len(seeds) // size_of_batches(len(seeds), options.batch_size))
    clusters = _clusters(local, groups, options.seed)
    count = int(clusters.max()) + 1
    group_of = (torch.randperm(count, generator=generator) % groups)[clusters]
    order = torch.argsort(group_of, stable=True)
    trained = torch.zeros(len(clusters), dtype=torch.bool)
    trained[seeds] = True
    for members in order.split(torch.bincount(group_of, minlength=groups).tolist()):
        rows = trained[members].nonzero().squeeze(1)
        if len(rows):
            graph, _ = induced(local.graph, members.numpy())
            yield Batch([graph] * options.layers, members, rows, members[rows])


def _clusters(local: LocalGraph, groups: int, seed: int) -> Tensor:
    """Return the cluster of each vertex, int32."""
    key = ("clusters", groups, seed)
    if key not in local.cache:
        n = local.graph.num_targets
        count = max(groups, min(CLUSTERS * groups, n // VERTICES))
        edges = local.graph.edge_index.T.contiguous().numpy()
        threads = torch.get_num_threads()
        opened = open_graph(edges, num_vertices=n, threads=threads)
        assignment = partitioners.spring(opened, min(count, n), seed=seed, threads=threads).assignment
        local.cache[key] = torch.from_numpy(assignment.astype(np.int32))
    return local.cache[key]
