"""Small graphs to train on, for the tests of training."""

from pathlib import Path

import numpy as np

import fastpart as fp


def planted(folder: Path, k: int = 4, n: int = 600, m: int = 4000, assignment=None, **saved) -> Path:
    """Return a partition directory of communities with labels, features and splits."""
    edges = fp.generate.planted(folder / "g.bin", n=n, m=m, classes=4, features=8, seed=1)
    labels = np.load(folder / "g.bin.labels.npy")
    order = np.random.default_rng(0).permutation(n)
    splits = {"train": order[: n // 2], "val": order[n // 2 : 3 * n // 4], "test": order[3 * n // 4 :]}
    partition = fp.spring(edges, k=k) if assignment is None else fp.VertexPartition(assignment, k=k)
    given = {"features": folder / "g.bin.features.npy", "labels": labels, "splits": splits, **saved}
    partition.save(folder / "parts", graph=edges, **given)
    return folder / "parts"
