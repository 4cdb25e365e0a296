"""Regression: labels with fractions are targets, in every method."""

import numpy as np
import pytest

import fastpart as fp
from trainable import planted

torch = pytest.importorskip("torch")

QUICK = {"hidden": 16, "threads": 2, "dropout": 0.0, "lr": 0.02, "epochs": 15}
N = 300
METHODS = {
    "full": {},
    "sampled": {"workers": 2, "batch_size": None, "fanouts": [-1, -1]},
    "bytegnn": {"workers": 1, "batch_size": None, "fanouts": [-1, -1]},
    "armada": {"batch_size": None, "fanouts": [-1, -1]},
    "sdt": {"workers": 2, "average": "gradients"},
    "distgnn": {},
    "sancus": {},
}


def targets(width):
    """Return sums over features, so that there is something to learn. Some vertices have none."""
    random = np.random.default_rng(5)
    values = random.normal(size=(N, width)).astype(np.float32)
    values[::7] = np.nan
    return values if width > 1 else values[:, 0]


@pytest.fixture(scope="module", params=[1, 2])
def data(request, tmp_path_factory):
    """A partition of the vertices, one of the edges, and the targets."""
    folder, labels = tmp_path_factory.mktemp("planted"), targets(request.param)
    parts = planted(folder, k=2, n=N, m=1500, halo_hops=2, labels=labels)
    order = np.random.default_rng(0).permutation(N)
    splits = {"train": order[: N // 2], "val": order[N // 2 : 3 * N // 4], "test": order[3 * N // 4 :]}
    graph = folder / "g.bin"
    fp.algorithms.hdrf(graph, k=2).save(
        folder / "edges", graph=graph, features=f"{graph}.features.npy", labels=labels, splits=splits
    )
    return parts, folder / "edges", labels, splits


@pytest.mark.parametrize("method", METHODS)
def test_methods_agree_on_losses_and_scores(data, method):
    parts, edges, labels, splits = data
    source = edges if method == "distgnn" else parts
    trained = getattr(fp.train, method)(source, precision="float64", **QUICK, **METHODS[method])
    whole = fp.train.full(parts, precision="float64", **QUICK)
    np.testing.assert_allclose(trained.history["loss"], whole.history["loss"], rtol=1e-9)
    assert trained.history["loss"][-1] < trained.history["loss"][0]
    best = trained.history["val_rmse"].arg_min()
    assert trained.summary["best_epoch"] == best
    predicted = trained.predict(source)
    assert (predicted.dtype, predicted.shape) == (np.float32, labels.shape)
    known = np.sort(splits["test"])
    errors = (predicted - labels)[known].reshape(len(known), -1)
    errors = errors[~np.isnan(errors).any(1)]
    expected = {"rmse": np.sqrt(np.square(errors).mean()), "mae": np.abs(errors).mean()}
    for name, value in expected.items():
        assert trained.summary[f"test_{name}"] == pytest.approx(value, rel=1e-4)
    assert f"test RMSE {expected['rmse']:.4f}" in repr(trained)


def test_a_training_is_kept_and_shown(data, tmp_path):
    parts, *_ = data
    trained = fp.train.sampled(parts, **QUICK, workers=1, scores="sampled", out=tmp_path / "run")
    opened = fp.train.open(tmp_path / "run")
    assert opened.predict(parts).shape == trained.predict(parts).shape
    assert opened.history["val_mae"].null_count() == 0
    assert opened.plot(tmp_path / "h.svg") is not None
    again = opened.resume(epochs=16)
    assert again.history.height == 16


def test_a_loss_of_the_user_gets_outputs_and_targets_of_one_shape(data):
    parts, *_ = data
    own = fp.train.full(parts, loss=torch.nn.MSELoss(), **QUICK)
    assert own.history["loss"].to_list() == fp.train.full(parts, **QUICK).history["loss"].to_list()


def test_targets_are_no_classes(data, tmp_path):
    parts, _, labels, splits = data
    graph = parts.parent / "g.bin"
    assert "label_skew" not in fp.evaluate(graph, fp.open_partition(parts), labels=labels).summary
    assert fp.store.verify(parts) is not None
    with pytest.raises(fp.errors.ParameterError, match="labels: they are targets of a regression"):
        fp.train.compare(graph, 2, features=np.eye(N), labels=labels, splits=splits)
    infinite = np.array(labels)
    infinite[1] = np.inf
    with pytest.raises(fp.errors.ParameterError, match="labels: the target of vertex 1 is infinite"):
        planted(tmp_path, k=2, n=N, m=1500, labels=infinite)
