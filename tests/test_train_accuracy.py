"""Training over parts is as accurate as training that knows no parts, on a real graph."""

import statistics

import numpy as np
import pytest
import scipy.sparse

import fastpart as fp

pytest.importorskip("torch")
pytest.importorskip("dgl")

SEEDS = 3
POINTS = 0.02
TRAINING = {"epochs": 24, "hidden": 32, "threads": 1}


@pytest.fixture(scope="module")
def parts(datasets, tmp_path_factory):
    """Return Cora in 4 parts of SPRING, with equally many training vertices."""
    folder = tmp_path_factory.mktemp("cora")
    labels = np.load(datasets / "cora.labels.npy")
    edges = fp.convert(datasets / "cora.txt.gz", folder / "cora.bin", num_vertices=len(labels))
    order = np.random.default_rng(0).permutation(len(labels))
    splits = {"train": order[:1000], "val": order[1000:1500], "test": order[1500:]}
    mask = np.isin(np.arange(len(labels)), splits["train"])
    features = scipy.sparse.load_npz(datasets / "cora.features.npz").toarray()
    part = fp.spring(edges, k=4, balance_on=mask)
    part.save(folder / "parts", edges=edges, features=features, labels=labels, splits=splits)
    return folder / "parts"


def mean(train, parts, **given):
    runs = [train(parts, **{**TRAINING, **given}, seed=seed) for seed in range(SEEDS)]
    return statistics.fmean(run.totals["test_accuracy"] for run in runs)


@pytest.fixture(scope="module")
def centralized(parts):
    return mean(fp.train.full, parts)


@pytest.mark.timeout(300)
def test_centralized_training_learns(centralized):
    assert centralized > 0.85


@pytest.mark.timeout(300)
@pytest.mark.parametrize("given", [{}, {"average_every": 3}])
def test_model_averaging_is_as_accurate(parts, centralized, given):
    assert abs(mean(fp.train.sdt, parts, workers=1, **given) - centralized) < POINTS


@pytest.mark.timeout(300)
def test_the_distributed_engine_is_as_accurate(parts, centralized):
    assert abs(mean(fp.train.distdgl, parts, batch_size=64, epochs=12) - centralized) < POINTS
