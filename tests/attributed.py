"""A graph with features, labels, splits and edge features, without torch."""

import numpy as np

import fastpart as fp


def attributed(n=300, m=2000, directedness="undirected", dtype=np.float64, loops=True):
    """Return a graph with loops, parallel records and isolated vertices, and the rows to save with it."""
    random = np.random.default_rng(0)
    records = random.integers(0, n - 5, (m, 2))
    records[:20, 0] = records[:20, 1]
    if not loops:
        records[:, 1] += records[:, 0] == records[:, 1]
    records[20:40] = records[40:60]
    graph = fp.open_graph(records, num_vertices=n, directedness=directedness)
    order = random.permutation(n)
    features = random.normal(size=(n, 6)).astype(dtype)
    return graph, {
        "graph": graph,
        "features": features,
        "labels": np.where(random.random(n) < 0.05, -1, features[:, :3].argmax(axis=1)),
        "edge_features": random.normal(size=(m, 2)),
        "splits": {"train": order[: n // 2], "val": order[n // 2 : 200], "test": order[200:]},
    }
