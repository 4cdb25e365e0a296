"""Where only relations carry the labels, a model for types finds them, and one that ignores types does not."""

import numpy as np
import pytest

import fastpart as fp
from random_typed import typed_graph

pytestmark = pytest.mark.torch

pytest.importorskip("torch")

N, SIGNALS, DEGREE = 600, 60, 4


def drawn(seed):
    """Return records of two relations, labels and features: a vertex is of the class of the signals that it `likes`.

    It has as many `hates`, of another class. So the union of both says little.
    """
    rng = np.random.default_rng(seed)
    labels, classes = rng.integers(0, 3, N), np.arange(SIGNALS) % 3
    likes, hates = [], []
    for vertex, label in enumerate(labels):
        mine, other = (np.flatnonzero(classes == each) for each in (label, (label + rng.integers(1, 3)) % 3))
        likes += [(signal, vertex) for signal in rng.choice(mine, DEGREE)]
        hates += [(signal, vertex) for signal in rng.choice(other, DEGREE)]
    features = {
        "person": rng.standard_normal((N, 3)).astype(np.float32),
        "signal": np.eye(3, dtype=np.float32)[classes],
    }
    order = rng.permutation(N)
    splits = {"train": order[:300], "val": order[300:400], "test": order[400:]}
    return {"hates": hates, "likes": likes}, labels, features, splits


HOW = {"epochs": 30, "fanouts": [10], "layers": 1, "batch_size": 100, "hidden": 16, "precision": "float64"}


@pytest.fixture(scope="module")
def data():
    return drawn(1)


def over_types(folder, data, k, **more):
    relations, labels, features, splits = data
    ends = {name: ("signal", "person", records) for name, records in relations.items()}
    graph = typed_graph(folder, {"person": N, "signal": SIGNALS}, ends)
    parts = np.random.default_rng(k).integers(0, k, graph.num_vertices)
    given = {"features": features, "labels": {"person": labels}, "splits": {"person": splits}}
    fp.VertexPartition(parts, k).save(folder / "parts", graph=graph, **given)
    return fp.train.sampled(folder / "parts", model="rgcn", workers=1, **{**HOW, **more})


def without_types(folder, data):
    relations, labels, features, splits = data
    records = np.concatenate([np.array(each) for each in relations.values()]) + np.array([N, 0])
    folder.mkdir()
    fp.VertexPartition(np.zeros(N + SIGNALS, int), 1).save(
        folder / "parts",
        graph=fp.open_graph(records, num_vertices=N + SIGNALS),
        features=np.concatenate([features["person"], features["signal"]]),
        labels=np.concatenate([labels, np.full(SIGNALS, -1)]),
        splits=splits,
    )
    return fp.train.sampled(folder / "parts", model="graphsage", workers=1, **HOW)


def test_rgcn_is_ten_points_better_and_alike_for_any_partition(tmp_path, data):
    whole = over_types(tmp_path / "whole", data, 1)
    plain = without_types(tmp_path / "plain", data)
    assert whole.summary["test_accuracy"] > plain.summary["test_accuracy"] + 0.1
    for k in (2, 4):
        parts = over_types(tmp_path / str(k), data, k, epochs=4)
        assert np.allclose(parts.history["loss"], whole.history["loss"][:4], rtol=1e-5)
