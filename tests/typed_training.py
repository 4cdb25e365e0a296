"""A small typed graph with features, labels and splits, saved for training."""

import numpy as np

import fastpart as fp
from random_typed import random_typed_graph

WIDTHS = {"author": 3, "field": 2, "paper": 5}


def typed_parts(folder, k=2, *, seed=1, scale=4, widths=None, parts=None, **more):
    """Save and open a partition of a random typed graph of authors, fields and papers, with labels of papers.

    The label of a paper is whether most of its fields have odd numbers, so relations carry it.
    """
    graph = random_typed_graph(folder, 5, scale=scale)
    rng = np.random.default_rng(seed)
    sizes = {each.name: each.n for each in graph.types}
    widths = WIDTHS if widths is None else widths
    features = {
        name: rng.standard_normal((sizes[name], width)).astype(np.float32) for name, width in widths.items()
    }
    if "field" in features:
        features["field"][:, 0] = np.arange(sizes["field"]) % 2
    labels = rng.integers(0, 3, sizes["paper"])
    order = rng.permutation(sizes["paper"])
    splits = {"train": order[:60], "val": order[60:100], "test": order[100:140]}
    if parts is None:
        parts = np.random.default_rng(k).integers(0, k, graph.num_vertices)
    given = {"features": features, "labels": {"paper": labels}, "splits": {"paper": splits}, **more}
    fp.VertexPartition(parts, k).save(folder / "parts", graph=graph, **given)
    return fp.open_partition(folder / "parts"), features, labels, splits
