"""A training that learns nothing says so, and so do features that cannot be learned from."""

import math

import numpy as np
import pytest

import fastpart as fp

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

N = 300
RING = np.array([[v, (v + step) % N] for v in range(N) for step in (1, 2, 3)])
LABELS = np.arange(N) * 3 // N
SPLITS = {"train": np.arange(0, N, 2), "val": np.arange(1, N, 4), "test": np.arange(3, N, 4)}


def saved(folder, features, **given):
    fp.VertexPartition(np.arange(N) * 2 // N, 2).save(
        folder, graph=RING, features=features, labels=LABELS, splits=SPLITS, **given
    )
    return folder


def test_the_loss_of_guessing(tmp_path):
    from fastpart.train.data.dataset import Dataset
    from fastpart.train.jobs.warnings import entropy_of_classes, entropy_of_pairs

    assert entropy_of_pairs(1) == pytest.approx(math.log(2))
    assert entropy_of_pairs(3) == pytest.approx(-(0.25 * math.log(0.25) + 0.75 * math.log(0.75)))
    x = np.ones((N, 2), np.float32)
    assert entropy_of_classes(Dataset(saved(tmp_path / "three", x))) == pytest.approx(math.log(3))
    p = fp.VertexPartition(np.arange(N) * 2 // N, 2)
    several = np.stack([np.arange(N) % 4 == 0, np.arange(N) % 4 == 3], 1).astype(np.uint8)
    for labels, expected in (
        (np.zeros(N, int), None),
        (np.linspace(0, 1, N), None),
        (several, (math.log(2) + 0) / 2),  # of even vertices, half have the first label, and none the second
    ):
        p.save(tmp_path / "other", graph=RING, features=x, labels=labels, splits=SPLITS)
        found = entropy_of_classes(Dataset(tmp_path / "other"))
        assert found == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize(
    ("guessing", "losses", "scores", "warns_at"),
    [
        ((2, 1), [9.0, 0.7, 0.694], [0.1, 0.1, 0.1], 1),  # once, although two epochs deserve it
        ((2, 1), [9.0, 0.7, 0.694], [0.1, 0.2, 0.1], None),  # scores move
        ((2, 1), [0.7, 0.6, 0.5], [1.0, 1.0, 1.0], None),  # it learns
        ((2, 1), [0.7], [0.1], None),  # a first epoch may be a single step
        ((2, 1), [0.7, 0.7], [None, None], None),
        ((2, 1), [0.7, 0.7, 0.7], [0.1, None, 0.1], 2),  # of the epochs that have scores
        ((3, 1), [0.7, 0.7, 0.7], [0.1, 0.1, 0.1], 2),
        ((2, 4), [0.7, 0.7, 0.7, 0.7], [0.1, 0.1, 0.1, 0.1], 3),  # so many epochs are needed to learn
        (None, [9.0, 9.0], [0.1, 0.1], None),  # the loss of guessing is not known
    ],
)
def test_it_warns_once_and_reports_all(recwarn, guessing, losses, scores, warns_at):
    from fastpart.train.jobs.warnings import Guessing, watched

    rows = []
    report = watched(rows.append, guessing and Guessing(math.log(2), *guessing), "use standardise=True")
    for epoch, (loss, score) in enumerate(zip(losses, scores, strict=True)):
        report({"epoch": epoch, "loss": loss, "val_mrr": score})
    assert len(rows) == len(losses)
    said = [str(each.message) for each in recwarn]
    if warns_at is None:
        assert said == []
    else:
        (text,) = said
        assert text.startswith(f"epoch {warns_at}: the network has learned nothing")
        assert text.endswith("use standardise=True")


@pytest.mark.parametrize("decoder", ["cosine", "dot"])
def test_links_whose_features_are_large_and_alike(tmp_path, decoder):
    random = np.random.default_rng(1)
    splits = fp.split_edges(RING, val=0.1, test=0.1)
    features = (1000 + random.random((N, 16))).astype(np.float32)
    p, given = fp.spring(splits.graph, 2), {"epochs": 3, "workers": 1, "batch_size": 100, "lr": 10.0}
    p.save(tmp_path / "parts", graph=splits.graph, edge_splits=splits, features=features)
    with pytest.warns(fp.errors.GraphWarning, match="epoch .*standardise=True"):
        fp.train.links(tmp_path / "parts", decoder=decoder, **given)


def test_links_learn_from_words_as_they_are(tmp_path):
    data = fp.datasets.cora()
    splits = fp.split_edges(data.graph)
    p = fp.VertexPartition(np.zeros(2708, int), 1)
    p.save(tmp_path / "parts", graph=splits.graph, edge_splits=splits, features=data.features)
    trained = fp.train.links(tmp_path / "parts", epochs=2, eval_every=2, fanouts=[5, 5], workers=1)
    assert trained.summary["test_auc"] > 0.8  # inner products reach 0.6


def test_links_are_standardised_by_all_vertices(tmp_path):
    splits, random = fp.split_edges(RING, val=0.1, test=0.1), np.random.default_rng(1)
    features = (1000 + random.random((N, 16))).astype(np.float32)
    fp.spring(splits.graph, 2).save(
        tmp_path / "parts", graph=splits.graph, edge_splits=splits, features=features, standardise=True
    )
    mean, deviation = np.load(tmp_path / "parts" / "feature_statistics.npy")
    np.testing.assert_allclose(mean, features.mean(0, dtype=float))
    np.testing.assert_allclose(deviation, features.std(0, dtype=float))


@pytest.mark.parametrize("method", ["full", "sampled", "sancus"])
def test_rows_that_are_zero_after_a_layer(tmp_path, method):
    features = np.random.default_rng(1).random((N, 16)).astype(np.float32) + 1
    given = {} if method == "full" else {"threads": 2}
    with pytest.warns(fp.errors.GraphWarning, match="all rows are zero after layer 1.*standardise=True"):
        getattr(fp.train, method)(saved(tmp_path / "parts", features), epochs=4, optimizer=kill, **given)


def kill(weights):
    """Return an optimizer whose first step makes all hidden numbers negative."""
    return torch.optim.SGD(weights, lr=1e6)


def test_classes_that_are_not_learned(tmp_path):
    alike = np.ones((N, 4), np.float32)
    with pytest.warns(
        fp.errors.GraphWarning, match=r"epoch \d\d: the network has learned nothing, its loss of 1\.\d+"
    ):
        fp.train.full(saved(tmp_path / "parts", alike), epochs=40)


def test_columns_of_very_different_scales(tmp_path):
    random = np.random.default_rng(1)
    features = (random.random((N, 5)) * [1, 1, 1, 50_000, 1]).astype(np.float32)
    given = {"epochs": 1, "lr": 1e-6}
    with pytest.warns(
        fp.errors.GraphWarning,
        match="very different scales: numbers of about 3e.04 in column 3.*standardise=True",
    ):
        fp.train.full(saved(tmp_path / "parts", features), **given)
    fp.train.full(saved(tmp_path / "better", features, standardise=True), **given)
    fp.train.full(saved(tmp_path / "small", features / 10_000), **given)


@pytest.mark.parametrize("width", [1, 3, 2000])
def test_words_and_other_common_features_are_not_named(tmp_path, width, recwarn):
    from fastpart.train.data.dataset import Dataset
    from fastpart.train.jobs.warnings import warn_of_scales

    random = np.random.default_rng(1)
    for features in (
        random.random((N, width)) < np.geomspace(0.001, 0.9, width),
        random.normal(5, 1000, (N, width)),
        np.zeros((N, width)),
        np.full((N, width), np.nan),
    ):
        warn_of_scales(Dataset(saved(tmp_path / "parts", features.astype(np.float32))))
    assert not [each for each in recwarn.list if "scales" in str(each.message)]
