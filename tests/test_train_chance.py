"""A training that learns nothing says so."""

import math

import numpy as np
import pytest

import fastpart as fp

pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_the_loss_of_guessing():
    from fastpart.train.jobs.chance import guessing

    assert guessing(1) == pytest.approx(math.log(2))
    assert guessing(3) == pytest.approx(-(0.25 * math.log(0.25) + 0.75 * math.log(0.75)))


@pytest.mark.parametrize(
    ("losses", "scores", "warns_at"),
    [
        ([9.0, 0.7, 0.694], [0.1, 0.1, 0.1], 1),  # once, although two epochs deserve it
        ([9.0, 0.7, 0.694], [0.1, 0.2, 0.1], None),  # scores move
        ([0.7, 0.6, 0.5], [1.0, 1.0, 1.0], None),  # it learns
        ([0.7], [0.1], None),  # a first epoch may be a single step
        ([0.7, 0.7], [None, None], None),
    ],
)
def test_it_warns_once_and_reports_all(recwarn, losses, scores, warns_at):
    from fastpart.train.jobs.chance import watched

    rows = []
    report = watched(rows.append, math.log(2))
    for epoch, (loss, score) in enumerate(zip(losses, scores, strict=True)):
        report({"epoch": epoch, "loss": loss, "val_mrr": score})
    assert len(rows) == len(losses)
    said = [str(each.message) for each in recwarn]
    if warns_at is None:
        assert said == []
    else:
        (text,) = said
        assert text.startswith(f"epoch {warns_at}: the network has learned nothing")
        assert "standardise=True" in text


def test_links_whose_features_are_large_and_alike(tmp_path):
    random = np.random.default_rng(1)
    ring = np.array([[v, (v + step) % 300] for v in range(300) for step in (1, 2, 3)])
    splits = fp.split_edges(ring, val=0.1, test=0.1)
    features = (1000 + random.random((300, 16))).astype(np.float32)
    fp.spring(splits.graph, 2).save(
        tmp_path / "parts", graph=splits.graph, edge_splits=splits, features=features
    )
    with pytest.warns(fp.GraphWarning, match="the network has learned nothing.*standardise=True"):
        fp.train.links(tmp_path / "parts", epochs=3, workers=1, lr=10.0, batch_size=100)
