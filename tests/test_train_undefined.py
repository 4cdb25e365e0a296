"""NaN and infinite numbers: named where they come in, never scored, never the best, and of no class."""

import numpy as np
import pytest

import fastpart as fp
from edge_partitioned import planted_edges
from in_process import in_process
from trainable import planted
from typed_training import typed_parts

torch = pytest.importorskip("torch")

from fastpart.train.learning.metrics import Scores  # noqa: E402
from fastpart.train.models.scores import Task  # noqa: E402

QUICK = {"hidden": 8, "epochs": 2, "threads": 1}

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(300)]

METHODS = {
    "full": {"batch_size": None},
    "sampled": {"batch_size": 100, "fanouts": [4, 3]},
    "bytegnn": {"batch_size": 100, "fanouts": [4, 3]},
    "sdt": {"batch_size": 100},
    "sancus": {},
    "distgnn": {},
}


def spoiled(folder, of="vertices", **saved):
    """Return parts of communities, in which the features of vertex 17 are NaN."""
    make, n = (planted, 600) if of == "vertices" else (planted_edges, 300)
    features = np.random.default_rng(0).standard_normal((n, 8)).astype(np.float32)
    features[17, 3] = np.nan
    return make(folder, features=features, **{"k": 2, **saved})


@pytest.mark.parametrize("method", METHODS)
def test_a_feature_that_is_nan_is_named_and_its_epochs_have_no_score(method, tmp_path):
    k = 1 if method in ("sancus", "distgnn") else 2  # one worker per part
    parts = spoiled(tmp_path, "edges" if method == "distgnn" else "vertices", k=k)
    with pytest.warns(
        fp.errors.GraphWarning, match="NaN or infinite. The features of vertex 17 in part [01] have"
    ) as told:
        trained = in_process(getattr(fp.train, method))(parts, **QUICK, **METHODS[method])
    assert len([each for each in told if "17" in str(each.message)]) == 1
    assert trained.history["val_f1"].is_nan().all()
    assert all(
        np.isnan(trained.summary[f"{split}_{name}"])
        for split in ("val", "test")
        for name in ("accuracy", "f1")
    )
    with pytest.warns(
        fp.errors.GraphWarning, match=r"^predict: the outputs of 600 vertices|^predict: the outputs of 300"
    ):
        assert (trained.predict(parts) == -1).all()


TASKS = {
    "classes": {},
    "several": {"labels": np.random.default_rng(1).integers(0, 2, (600, 5))},
    "regression": {"labels": np.random.default_rng(1).random((600, 2))},
}


@pytest.mark.parametrize("task", TASKS)
def test_outputs_that_are_undefined_are_marked_and_the_others_stay(tmp_path, task):
    (tmp_path / "clean").mkdir()
    (tmp_path / "spoiled").mkdir()
    trained = fp.train.full(planted(tmp_path / "clean", k=2, **TASKS[task]), **QUICK)
    with pytest.warns(
        fp.errors.GraphWarning, match="^features: the row of vertex 17 has NaN or infinite numbers. "
    ):
        parts = spoiled(tmp_path / "spoiled", **TASKS[task])
    with pytest.warns(
        fp.errors.GraphWarning, match=r"^predict: the outputs of \d+ vertices, the first of them vertex \d+, "
    ):
        logits = trained.predict(parts, what="logits")
    undefined = ~np.isfinite(logits).all(1)
    assert 1 < undefined.sum() < 500
    assert undefined[17]
    with pytest.warns(
        fp.errors.GraphWarning, match=f"^predict: the outputs of {undefined.sum()} vertices, .* vertex "
    ):
        found = trained.predict(parts, out=tmp_path / "found.npy")
    if task == "classes":
        assert (found[undefined] == -1).all()
        assert (found[~undefined] == logits[~undefined].argmax(1)).all()
    elif task == "several":
        assert (found[undefined] == 255).all()
        assert (found[~undefined] == (logits[~undefined] > 0)).all()
    else:
        np.testing.assert_array_equal(found, logits)


def test_a_test_vertex_alone_has_no_test_score(tmp_path):
    """An isolated vertex reaches no other, so all epochs have a loss and a validation score."""
    edges = np.stack([np.arange(60), (np.arange(60) + 1) % 60], axis=1)
    features = np.eye(2, dtype=np.float32)[np.arange(61) % 2]
    features[60] = np.inf
    splits = {"train": range(30), "val": range(30, 45), "test": [*range(45, 61)]}
    graph = fp.open_graph(edges, num_vertices=61)
    given = {"features": features, "labels": np.arange(61) % 2, "splits": splits}
    fp.VertexPartition(np.arange(61) % 2, 2).save(tmp_path / "parts", graph=graph, **given)
    with pytest.warns(
        fp.errors.GraphWarning, match="^the best epoch: test_accuracy is NaN or infinite. .* vertex 60 "
    ):
        trained = in_process(fp.train.sampled)(tmp_path / "parts", **QUICK)
    assert np.isfinite(trained.summary["val_f1"])
    assert np.isnan(trained.summary["test_f1"])


def test_a_loss_that_leaves_the_numbers_ends_no_training_and_is_never_the_best(tmp_path):
    parts = planted(tmp_path, k=1)

    def loss(outputs, labels):
        loss.calls += 1
        return torch.nn.functional.cross_entropy(outputs, labels) * (np.nan if loss.calls > 4 else 1)

    loss.calls = 0
    with pytest.warns(
        fp.errors.GraphWarning, match="^epoch [123]: loss .* All features are finite: lower lr, or clip"
    ):
        trained = fp.train.full(parts, **{**QUICK, "epochs": 6}, batch_size=None, loss=loss)
    losses = trained.history["loss"].to_numpy()
    assert len(losses) == 6
    assert np.isfinite(losses[trained.summary["best_epoch"]])
    assert np.isfinite(trained.summary["test_f1"])


def test_weights_that_are_no_numbers_are_not_those_of_the_best_epoch_without_scores(tmp_path):
    parts = planted(tmp_path, k=1, splits={"train": range(300)})

    class Vanishing(torch.autograd.Function):
        """The loss is finite, and its gradient is not, as of a root of 0."""

        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * torch.nan

    def loss(outputs, labels):
        loss.calls += 1
        outputs = Vanishing.apply(outputs) if loss.calls > 4 else outputs
        return torch.nn.functional.cross_entropy(outputs, labels)

    loss.calls = 0
    with pytest.warns(fp.errors.GraphWarning):
        trained = fp.train.full(parts, **{**QUICK, "epochs": 6}, batch_size=None, loss=loss)
    assert all(weight.isfinite().all() for weight in trained.weights.values())
    assert trained.summary["best_epoch"] == np.isfinite(trained.history["loss"].to_numpy()).sum() - 2


def test_features_of_types_and_of_edges_are_named(tmp_path):
    (tmp_path / "types").mkdir()
    parts = typed_parts(tmp_path / "types", k=2)[0]
    file = tmp_path / "types/parts/part-00001/types/author/features.npy"
    rows = np.load(file)
    rows[3, 1] = np.inf
    np.save(file, rows)
    of = parts.parts[1].of_type("author")
    with pytest.warns(
        fp.errors.GraphWarning, match=f"features of vertex {of.inner[3] - of.type.first} of type 'author' in "
    ):
        in_process(fp.train.sampled)(tmp_path / "types/parts", model="rgcn", **QUICK)
    (tmp_path / "edges").mkdir()
    edge_features = np.zeros((4000, 2), np.float32)
    edge_features[5] = np.nan
    with pytest.warns(
        fp.errors.GraphWarning, match="^edge_features: the row of record 5 has NaN or infinite numbers. "
    ):
        parts = planted(tmp_path / "edges", k=2, edge_features=edge_features)
    with pytest.warns(
        fp.errors.GraphWarning, match=r"The edge features of the edge from vertex \d+ to \d+ in part "
    ):
        fp.train.full(parts, model="gine", **QUICK)


def test_a_metric_of_the_user_has_no_value_for_undefined_outputs():
    class Counted:
        def reset(self):
            self.rows = 0

        def update(self, outputs, labels):
            assert outputs.isfinite().all()
            self.rows += len(labels)

        def compute(self):
            return self.rows

        def merge_state(self, other):
            self.rows += other.rows

    def positive(outputs, labels):
        return (outputs > 0).float().mean()

    scores = Scores(Task(2, 3, False), {"counted": Counted(), "positive": positive}, ("val", "test"))
    outputs, labels = torch.ones(4, 3), torch.zeros(4, dtype=torch.int64)
    scores.add("val", outputs, labels)
    scores.add("test", outputs, labels)
    outputs[2, 1] = torch.nan
    scores.add("test", outputs, labels)
    found = scores.of_all()
    assert (found["val_counted"], found["val_positive"], found["val_accuracy"]) == (4, 1.0, 1.0)
    assert all(np.isnan(found[f"test_{name}"]) for name in ("counted", "positive", "accuracy", "f1"))


def test_a_class_may_be_ruled_out():
    logits = torch.tensor([[1.0, -torch.inf], [-torch.inf, -torch.inf], [torch.nan, 1.0], [torch.inf, 1.0]])
    assert Task(2, 2, False).defined(logits).tolist() == [True, False, False, False]
    assert Task(2, 2, False, regression=True).defined(logits).tolist() == [False] * 4
