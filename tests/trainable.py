"""Small graphs to train on, for the tests of training."""

from pathlib import Path

import numpy as np
import polars as pl

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


def communities(n=400, classes=4):
    """Return users whose topic is that of most of their neighbours, and who follows whom. Every tenth has no topic."""
    random = np.random.default_rng(0)
    topic = random.integers(0, classes, n)
    ids = np.array([f"u{each:03}" for each in random.permutation(n)])
    source = random.integers(0, n, 8 * n)
    alike = [random.choice(np.flatnonzero(topic == each)) for each in topic[source]]
    target = np.where(random.random(8 * n) < 0.9, alike, random.integers(0, n, 8 * n))
    users = pl.DataFrame(
        {
            "user": ids,
            "age": random.normal(40, 9, n),
            "country": random.choice(["at", "de", "fr"], n),
            "city": [f"c{each}" for each in random.integers(0, 60, n)],
            "bio": [f"I am number {each}" for each in range(n)],
            "topic": [None if v % 10 == 0 else "abcd"[each] for v, each in enumerate(topic)],
        }
    )
    return pl.DataFrame({"follower": ids[source], "followed": ids[target]}), users, np.array([*"abcd"])[topic]
