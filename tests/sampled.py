"""Partition directories to sample from."""

import numpy as np

import fastpart as fp
from fastpart import _core


def folders(root):
    return sorted(root.glob("part-*"))


def hubs():
    """Return n, records with hubs, and features of the vertices."""
    rng = np.random.default_rng(0)
    n = 3000
    ends = (n * rng.random((30_000, 2)) ** 3).astype(np.uint32)
    ends[:, 1] = rng.permutation(n)[ends[:, 1]]
    return n, ends, rng.standard_normal((n, 5)).astype(np.float32)


def store(graph, root):
    """Save several partitions of the graph: one part, two, four, and with empty ones."""
    n, records, features = graph
    source = fp.open_graph(records, num_vertices=n)
    partitions = {
        "one": fp.VertexPartition(np.zeros(n, int), 1),
        "random": fp.algorithms.random(source, k=4, of="vertices"),
        "spring": fp.spring(source, k=2),
        "empty": fp.VertexPartition(1 + np.arange(n) % 2 * 3, 6),
    }
    for name, partition in partitions.items():
        partition.save(root / name, graph=source, features=features)
    return root


def opened(stored, name):
    topology = _core.Topology(folders(stored / name))
    features = _core.Features([folder / "features.npy" for folder in folders(stored / name)], topology)
    return topology, features
