"""Unions of clusters (Chiang et al., "Cluster-GCN", KDD 2019, algorithm 1).

SPRING partitions the own vertices of each process into clusters once. Each epoch puts them into groups at random. Each
step trains on the subgraph that one group induces. ``batch_size`` is the mean number of training vertices in the groups
of all processes. For the clusters, the edges between the own vertices lie in memory once, 12 bytes each.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from ...graphs.opening import open_graph
from ...partitions import partitioners
from ..options import Options
from .batch import Batch, induced, size_of_batches
from .field import Field, VertexRows

CLUSTERS = 10
"""Clusters per group. With several, the edges between clusters take part, too (section 3.2)."""

VERTICES = 50
"""Least number of vertices of a cluster. Smaller ones would have hardly any edges inside."""


def batches(field: Field, options: Options, seed: int) -> Iterator[Batch]:
    """Yield the batches of one epoch."""
    groups = -(-len(field.seeds) // size_of_batches(len(field.seeds), options.batch_size))
    clusters = _clusters(field, groups, options.seed)
    own = np.arange(field.own.start, field.own.stop, dtype=np.uint32)
    shuffled = np.random.default_rng([seed, field.own.start]).permutation(int(clusters.max(initial=-1)) + 1)
    group_of = (shuffled % groups)[clusters]
    sizes = np.bincount(group_of, minlength=groups)
    for members in np.split(own[np.argsort(group_of, kind="stable")], np.cumsum(sizes)[:-1]):
        yield induced(field, members, options.layers)[0]


def _clusters(field: Field, groups: int, seed: int) -> npt.NDArray[np.int32]:
    """Return the cluster of each own vertex."""
    key = ("clusters", groups, seed)
    if key not in field.cache:
        own = np.arange(field.own.start, field.own.stop, dtype=np.uint32)
        field.cache[key] = _clustered(field, own, groups, seed)
    clusters: npt.NDArray[np.int32] = field.cache[key]
    return clusters


def _clustered(field: Field, own: VertexRows, groups: int, seed: int) -> npt.NDArray[np.int32]:
    if not len(own):
        return np.empty(0, np.int32)
    count = max(groups, min(CLUSTERS * groups, len(own) // VERTICES))
    inside = field.topology.subgraph(own)
    targets = np.repeat(np.arange(len(own), dtype=np.uint32), np.diff(inside.indptr))
    edges = np.stack([inside.indices.astype(np.uint32), targets], axis=1)
    threads = torch.get_num_threads()
    graph = open_graph(edges, num_vertices=len(own), threads=threads)
    found = partitioners.spring(graph, min(count, len(own)), seed=seed, threads=threads)
    return found.assignment.astype(np.int32)
