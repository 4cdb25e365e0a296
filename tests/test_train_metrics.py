"""Metrics of users: the same for any parts and workers, as from all outputs at once."""

import numpy as np
import pytest

import fastpart as fp
from edge_partitioned import planted_edges
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.learning.metrics import Scores  # noqa: E402
from fastpart.train.models.scores import Task  # noqa: E402

QUICK = {"epochs": 2, "hidden": 8, "threads": 2, "eval_every": 2}
METHODS = {
    "full": {},
    "sampled": {"workers": 2, "batch_size": 50},
    "bytegnn": {"workers": 1},
    "armada": {"compute_workers": 1},
    "sdt": {"workers": 2},
    "distgnn": {},
    "sancus": {},
}


def margin(outputs, labels):
    """One value for each row."""
    return outputs.softmax(1).gather(1, labels[:, None])[:, 0]


def spread(outputs, labels):
    """The mean of the rows."""
    return outputs.std(1).mean().item()


class TopTwo:
    """As the metrics of torchmetrics: it keeps counts, to which those of another one can be added."""

    def __init__(self):
        self.reset()

    def __call__(self, outputs, labels):
        raise AssertionError("it counts by update()")

    def reset(self):
        self.counts = torch.zeros(2, dtype=torch.float64)

    def update(self, outputs, labels):
        hits = (outputs.topk(2, 1).indices == labels[:, None]).any(1)
        self.counts += torch.tensor([hits.sum(), len(hits)])

    def compute(self):
        return self.counts[0] / self.counts[1]

    def merge_state(self, other):
        self.counts += other.counts


METRICS = {"margin": margin, "spread": spread, "top2": TopTwo()}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=2, n=300, m=1500)


@pytest.fixture(scope="module")
def edge_parts(tmp_path_factory):
    return planted_edges(tmp_path_factory.mktemp("edges"), k=2)


@pytest.mark.parametrize("method", METHODS)
def test_metrics_are_those_of_all_vertices_at_once(parts, edge_parts, tmp_path, method):
    source = edge_parts if method == "distgnn" else parts
    given = {**QUICK, **METHODS[method], "metrics": METRICS, "out": tmp_path / "run"}
    trained = getattr(fp.train, method)(source, **given)
    assert trained.history["val_margin"].null_count() == trained.history["val_f1"].null_count()
    from fastpart.train.data.dataset import Dataset, EdgeDataset

    whole = (EdgeDataset if method == "distgnn" else Dataset)(source).whole()
    outputs = torch.from_numpy(trained.predict(source, what="logits"))
    for split in ("val", "test"):
        ids = whole.splits[split]
        rows, labels = outputs[ids], whole.labels[ids]
        two = TopTwo()
        two.update(rows, labels)
        expected = (margin(rows, labels).mean(), spread(rows, labels), two.compute())
        found = [trained.summary[f"{split}_{name}"] for name in METRICS]
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    opened = fp.train.open(tmp_path / "run")
    assert opened.summary["test_top2"] == trained.summary["test_top2"]
    assert opened.resume(epochs=3).history.height == 3  # without metrics: they change no loss


def test_sampled_scores_have_metrics(parts):
    trained = fp.train.sampled(parts, **QUICK, workers=1, scores="sampled", metrics={"margin": margin})
    assert 0 < trained.history["val_margin"][-1] < 1


def test_a_split_without_vertices_has_no_value():
    scores = Scores(Task(2, 3, multilabel=False), {"margin": margin}, ["val"])
    scores.add("val", torch.empty(0, 3), torch.empty(0, dtype=torch.int64))
    assert np.isnan(scores.of_all()["val_margin"])


class Unmerged:
    """It cannot be merged."""

    def __call__(self, outputs, labels):
        return 0.0

    reset = update = compute = __call__


def test_workers_without_validation_vertices_do_not_wait(tmp_path):
    """All of them are in one part."""
    splits = {"train": np.arange(0, 300, 2), "val": [1, 3, 5], "test": [7, 9]}
    parts = planted(tmp_path, k=2, n=300, m=1500, splits=splits, assignment=np.arange(300) // 150)
    trained = fp.train.sampled(parts, **QUICK, workers=2, metrics=METRICS)
    assert 0 <= trained.summary["test_top2"] <= 1


@pytest.mark.parametrize(
    ("metrics", "error", "text"),
    [
        (
            {"apart": Unmerged()},
            fp.errors.ParameterError,
            r"metrics: apart has no merge_state\(other\), so what 2 workers",
        ),
        ([margin], TypeError, "metrics: expected names and callables"),
        ({"f1": margin}, fp.errors.ParameterError, "metrics: 'f1' is no free name for a column"),
        ({"a b": margin}, fp.errors.ParameterError, "metrics: 'a b' is no free name"),
        ({"best": 3}, TypeError, "metrics: best is a int. Pass a callable"),
        (
            {"wide": lambda o, y: o},
            fp.errors.ParameterError,
            r"metrics: wide returned a tensor of shape \(2, 4\) for 2",
        ),
        ({"text": lambda o, y: "x"}, fp.errors.ParameterError, "metrics: text returned a str"),
        (
            {"lost": lambda o, y: o.absent},
            fp.errors.ParameterError,
            "metrics: lost cannot be called with outputs of",
        ),
    ],
)
def test_a_bad_metric_is_refused_before_workers_start(parts, monkeypatch, metrics, error, text):
    monkeypatch.setattr("fastpart.runtime.watch.Supervisor.start", lambda *_, **__: pytest.fail("started"))
    with pytest.raises(error, match=text):
        fp.train.sampled(parts, **QUICK, workers=2, metrics=metrics)
