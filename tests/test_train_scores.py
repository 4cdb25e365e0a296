"""Validation scores from samples, and trainings without scores."""

import numpy as np
import pytest

import fastpart as fp
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import Dataset  # noqa: E402
from fastpart.train.jobs.job import Place  # noqa: E402
from fastpart.train.method_options import SampledOptions  # noqa: E402
from fastpart.train.methods.sampled import sampled_scores  # noqa: E402
from fastpart.train.models import build  # noqa: E402

QUICK = {"hidden": 8, "threads": 2, "epochs": 4, "batch_size": 100, "fanouts": [4, 3], "eval_every": 2}
METHODS = ("sampled", "bytegnn", "armada")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=3)


def train(parts, method, workers=2, **given):
    name = "compute_workers" if method == "armada" else "workers"
    return getattr(fp.train, method)(parts, **{**QUICK, name: workers, **given})


@pytest.mark.parametrize("method", METHODS)
def test_with_all_neighbours_they_are_exact(parts, method):
    given = {"fanouts": [-1, -1]}
    found, exact = (train(parts, method, scores=scores, **given) for scores in ("sampled", "exact"))
    assert found.history["loss"].to_list() == pytest.approx(exact.history["loss"].to_list(), rel=1e-6)
    for name in ("val_accuracy", "val_f1"):
        assert found.history[name].to_list() == pytest.approx(exact.history[name].to_list())
    for name in ("val_f1", "test_f1"):  # the end is exact
        assert found.summary[name] == pytest.approx(exact.summary[name])


def test_they_are_the_same_for_any_parts_and_workers(parts, tmp_path):
    other = planted(tmp_path, k=2, assignment=np.arange(600) % 2)
    expected = train(parts, "sampled", 1, scores="sampled").history["val_f1"].to_list()
    assert expected[::2] == [None, None]
    for source, method, workers in ((parts, "sampled", 3), (other, "sampled", 2), (parts, "armada", 2)):
        assert train(source, method, workers, scores="sampled").history["val_f1"].to_list() == expected


def test_some_vertices_stand_for_all(parts, tmp_path):
    dataset, options = Dataset(parts), SampledOptions(batch_size=100, fanouts=(4, 3), timeout=9.0)
    place = Place(tmp_path, tmp_path, 10**6)
    validation = sampled_scores.SampledScores(dataset, options, place, edge_attr=False, most=20)
    accuracy = 20 * validation.scores(build(dataset.task, options), lambda step: step.x)["val_accuracy"]
    assert accuracy == pytest.approx(round(accuracy))
    again = sampled_scores.SampledScores(dataset, options, place, edge_attr=False, most=20)
    assert np.array_equal(again._steps._loader.vertices, validation._steps._loader.vertices)


@pytest.mark.parametrize("method", METHODS)
def test_there_may_be_none(parts, method, tmp_path):
    trained = train(parts, method, scores="none", out=tmp_path / "run")
    assert trained.history["val_f1"].is_null().all()
    assert (trained.summary["best_epoch"], "test_f1" in trained.summary) == (3, False)
    assert "without test scores" in repr(trained)
    assert "best_epoch" in str(trained)
    assert trained.plot(tmp_path / "plot.svg")
    assert trained.history["loss"].to_list() == train(parts, method).history["loss"].to_list()
    longer = fp.train.open(tmp_path / "run").resume(epochs=6, scores="exact")
    assert longer.history["val_f1"].is_null().to_list() == [True] * 5 + [False]
    with pytest.raises(
        fp.errors.ParameterError, match=r'^patience: with scores="none" no epoch is better than another'
    ):
        train(parts, method, scores="none", patience=3)
