"""Training over parts is as accurate as training that knows no parts, on a real graph."""

import statistics

import numpy as np
import pytest
import scipy.sparse

import fastpart as fp
from soaked import some_of

pytest.importorskip("torch")

SEEDS = 2
POINTS = 0.02
TRAINING = {"epochs": 24, "hidden": 32, "threads": 1}


@pytest.fixture(scope="module")
def cora(datasets, tmp_path_factory):
    """Return a folder, the edges, and what belongs to the vertices."""
    folder = tmp_path_factory.mktemp("cora")
    labels = np.load(datasets / "cora.labels.npy")
    edges = fp.convert(datasets / "cora.txt.gz", folder / "cora.bin", num_vertices=len(labels))
    order = np.random.default_rng(0).permutation(len(labels))
    splits = {"train": order[:1000], "val": order[1000:1500], "test": order[1500:]}
    features = scipy.sparse.load_npz(datasets / "cora.features.npz").toarray()
    return folder, edges, {"features": features, "labels": labels, "splits": splits}


@pytest.fixture(scope="module")
def parts(cora):
    """Return Cora in 4 parts of SPRING, with equally many training vertices."""
    folder, edges, content = cora
    mask = np.isin(np.arange(edges.num_vertices), content["splits"]["train"])
    fp.spring(edges, k=4, balance_on=mask).save(folder / "parts", graph=edges, **content)
    return folder / "parts"


@pytest.fixture(scope="module")
def edge_parts(cora):
    """Return the edges of Cora in 4 parts of SIGMA."""
    folder, edges, content = cora
    fp.sigma(edges, k=4, of="edges").save(folder / "edges", graph=edges, **content)
    return folder / "edges"


def mean(train, parts, seeds=SEEDS, **given):
    runs = [train(parts, **{**TRAINING, **given}, seed=seed) for seed in range(seeds)]
    return statistics.fmean(run.summary["test_accuracy"] for run in runs)


@pytest.fixture(scope="module")
def centralized(parts):
    return mean(fp.train.full, parts)


@pytest.mark.timeout(300)
def test_centralized_training_learns(centralized):
    assert centralized > 0.85


@pytest.mark.timeout(300)
@pytest.mark.parametrize("given", some_of([{}, {"average_every": 3}], always=[{}]))
def test_model_averaging_is_as_accurate(parts, centralized, given):
    assert abs(mean(fp.train.sdt, parts, workers=1, **given) - centralized) < POINTS


@pytest.mark.dgl
@pytest.mark.timeout(300)
def test_the_distributed_engine_is_as_accurate(parts, centralized):
    pytest.importorskip("dgl")
    assert abs(mean(fp.train.distdgl, parts, batch_size=64, epochs=12) - centralized) < POINTS


@pytest.mark.timeout(300)
def test_full_batches_over_parts_are_those_of_one_process(parts, edge_parts):
    given = {**TRAINING, "epochs": 8}
    central = fp.train.full(parts, **given)
    for over_parts in (fp.train.distgnn(edge_parts, **given), fp.train.sancus(parts, **given)):
        np.testing.assert_allclose(over_parts.history["loss"], central.history["loss"], rtol=0, atol=1e-4)
        assert abs(over_parts.summary["test_accuracy"] - central.summary["test_accuracy"]) < 0.003


@pytest.mark.timeout(300)
def test_late_and_missing_messages_cost_little(parts, edge_parts, centralized):
    assert abs(mean(fp.train.distgnn, edge_parts, seeds=1, delay=5) - centralized) < POINTS
    assert abs(mean(fp.train.sancus, parts, seeds=1, rows="boundary", period=5) - centralized) < POINTS
