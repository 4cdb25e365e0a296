"""Small graphs with labels and a partition of their edges, as directories, for the tests of training."""

from pathlib import Path

import numpy as np

import fastpart as fp


def edge_parts_of(folder: Path, n: int, edges, assignment, k: int, **saved) -> Path:
    """Save an edge partition with features, labels and splits; ``saved`` replaces some of them."""
    random = np.random.default_rng(n)
    labels = random.integers(0, 3, n)
    order = random.permutation(n)
    splits = {"train": order[: n // 2 + 1], "val": order[n // 2 + 1 : -1], "test": order[-1:]}
    features = random.standard_normal((n, 6), np.float32)
    opened = fp.open_graph(np.asarray(edges, np.uint32).reshape(-1, 2), num_vertices=n)
    partition = fp.EdgePartition(np.asarray(assignment, np.uint8), k=k)
    partition.save(
        folder, graph=opened, **{"features": features, "labels": labels, "splits": splits, **saved}
    )
    return folder


def planted_edges(folder: Path, k: int = 3, n: int = 300, m: int = 1500, by=None, **saved) -> Path:
    """Return an edge partition of communities, by HDRF unless ``by`` says otherwise."""
    edges = fp.generate.planted(folder / "g.bin", n=n, m=m, classes=4, features=8, seed=1)
    labels = np.load(folder / "g.bin.labels.npy")
    order = np.random.default_rng(0).permutation(n)
    splits = {"train": order[: n // 2], "val": order[n // 2 : 3 * n // 4], "test": order[3 * n // 4 :]}
    given = {"features": folder / "g.bin.features.npy", "labels": labels, "splits": splits, **saved}
    part = (by or fp.algorithms.hdrf)(edges, k=k)
    part.save(folder / "parts", graph=edges, **given)
    return folder / "parts"
