"""Partition directories of a random typed graph whose papers have labels and whose authors have no features."""

import numpy as np

import fastpart as fp
from random_typed import random_typed_graph

CLASSES = 3


def typed_parts(folder, k, seed=0, **options):
    """Save and open parts of a graph of 40 authors, 5 fields and 60 papers. Every part has some vertices."""
    rng = np.random.default_rng(seed)
    graph = random_typed_graph(folder / "graph", seed)
    features = {
        "paper": rng.normal(size=(60, 3)).astype(np.float32),
        "field": rng.normal(size=(5, 2)).astype(np.float32),
    }
    labels = {"paper": rng.integers(0, CLASSES, 60)}
    splits = {"paper": {"train": np.arange(36), "val": np.arange(36, 48), "test": np.arange(48, 60)}}
    parts = np.random.default_rng(seed + k).integers(0, k, 105)
    given = {"features": features, "labels": labels, "splits": splits, **options}
    fp.VertexPartition(parts, k).save(folder / f"parts-{k}", graph=graph, **given)
    return fp.open_partition(folder / f"parts-{k}")
