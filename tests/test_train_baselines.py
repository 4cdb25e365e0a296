"""Baselines of a training: right, the same for any parts and workers, blind to test labels, and bounded in time."""

import json

import numpy as np
import pytest

import fastpart as fp
from edge_partitioned import planted_edges
from fastpart.cli import main
from in_process import one_worker
from trainable import planted
from typed_training import typed_parts

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import open_dataset  # noqa: E402
from fastpart.train.options import TrainOptions  # noqa: E402
from fastpart.train.runs import baselines  # noqa: E402
from fastpart.train.runs.baselines import Adam, Deadline, Items, verdict  # noqa: E402

N, M = 300, 1500
QUICK = {"hidden": 8, "epochs": 3, "threads": 1}

pytestmark = pytest.mark.usefixtures("one_thread", "patient")


@pytest.fixture
def patient(monkeypatch):
    """Let baselines take their time, however busy the machine is."""
    monkeypatch.setattr(baselines, "SECONDS", 60.0)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=3, n=N, m=M)


def outputs(source, name, folder, target=None, **options):
    """Return the outputs of a baseline for the test items, by ascending id."""
    dataset = open_dataset(source, target)
    items = Items(dataset)
    measure = baselines.BASELINES[name]
    predict = measure(items, TrainOptions(**{**QUICK, **options}), folder, Deadline(60))
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        found = torch.cat([outputs for outputs, _ in predict("test")])
    ids = [dataset.ids_of(*each) for each in zip(items.parts, items.places["test"], strict=True)]
    return found[np.argsort(np.concatenate(ids))].numpy()


def propagated(source, target=None):
    """Propagate labels through the adjacency matrix of the whole graph."""
    dataset = open_dataset(source, target)
    n, task = int(dataset.manifest["n"]), dataset.task
    matrix, first = np.zeros((n, n)), dataset.targets.start
    for part in dataset.partition.parts:
        stop = part.num_inner if dataset.of == "vertices" else part.num_rows
        for row in range(stop):
            sources = part.vertices[part.indices[part.indptr[row] : part.indptr[row + 1]]]
            np.add.at(matrix, (part.vertices[row], sources), 1)
    matrix /= np.maximum(matrix.sum(1, keepdims=True), 1)
    local = dataset.whole()
    labels = local.labels.numpy()
    known = labels if labels.ndim == 2 else np.eye(task.classes)[np.maximum(labels, 0)]
    train, test = (first + local.splits[split].numpy() for split in ("train", "test"))
    rows = np.zeros((n, task.classes + 1))
    rows[train] = fixed = np.hstack([known[train - first], np.ones((len(train), 1))])
    for _ in range(baselines.ROUNDS):
        rows = matrix @ rows
        rows[train] = fixed
    values, mass = rows[test, :-1], rows[test, -1:]
    return np.where(mass > 0, values / np.where(mass > 0, mass, 1), known[train - first].mean(0))


def saved(folder, labels, k=3, **more):
    """Save a directory of two communities with isolated vertices."""
    random = np.random.default_rng(0)
    n = len(labels)
    edges = random.integers(0, n // 2 - 5, (3 * n, 2)) + random.integers(0, 2, (3 * n, 1)) * (n // 2)
    order = random.permutation(n)
    splits = {"train": order[: n // 2], "val": order[n // 2 : 3 * n // 4], "test": order[3 * n // 4 :]}
    given = {
        "graph": fp.open_graph(edges, num_vertices=n),
        "features": random.standard_normal((n, 3)).astype(np.float32),
        "splits": splits,
        **more,
    }
    fp.VertexPartition(np.arange(n) % k, k).save(folder, labels=labels, **given)
    return folder


@pytest.mark.parametrize("graph", ["plain", "edges", "typed", "several", "numbers"])
def test_label_propagation_is_that_of_the_whole_matrix(tmp_path, parts, graph):
    target, source = None, parts
    (tmp_path / "scratch").mkdir()
    if graph == "edges":
        source = planted_edges(tmp_path, n=N, m=M)
    elif graph == "typed":
        typed_parts(tmp_path, 3)
        source, target = tmp_path / "parts", None
    elif graph == "several":
        labels = (np.random.default_rng(1).random((100, 3)) < 0.4).astype(np.uint8)
        source = saved(tmp_path / "parts", labels)
    elif graph == "numbers":
        source = saved(tmp_path / "parts", np.random.default_rng(1).random((100, 2), np.float32))
    found = outputs(source, "label_propagation", tmp_path / "scratch", target)
    expected = propagated(source, target) - (0.5 if graph == "several" else 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_majority_is_the_most_frequent_class_of_training_vertices(tmp_path):
    labels = np.repeat([0, 1, 2, 2], 25)
    splits = {"train": np.arange(0, 100, 2), "val": [1, 3], "test": [51, 53, 77, 5]}
    found = fp.train.full(saved(tmp_path / "parts", labels, splits=splits), **QUICK).summary["baselines"]
    assert found["scores"]["majority"] == {
        "val_accuracy": 0.0,
        "val_f1": 0.0,
        "test_accuracy": 0.75,
        "test_f1": 0.75,
    }


def test_the_mean_and_base_rates_are_predicted_for_numbers_and_several_classes(tmp_path):
    random = np.random.default_rng(3)
    numbers = random.random(100, np.float32)
    rmse = fp.train.full(saved(tmp_path / "numbers", numbers), **QUICK).summary["baselines"]["scores"]
    splits = open_dataset(tmp_path / "numbers").whole().splits
    errors = numbers[splits["test"]] - numbers[splits["train"]].mean()
    assert rmse["majority"]["test_rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-5)
    several = (random.random((100, 3)) < [0.9, 0.1, 0.8]).astype(np.uint8)
    scores = fp.train.full(saved(tmp_path / "several", several), **QUICK).summary["baselines"]["scores"]
    right = (several[splits["test"]] == [1, 0, 1]).all(1).mean()
    assert scores["majority"]["test_accuracy"] == pytest.approx(right)


def test_the_perceptron_reads_features_and_no_edges(tmp_path):
    labels = np.random.default_rng(2).integers(0, 2, 200)
    features = np.stack([labels * 100.0 + 5000, np.ones(200)], axis=1).astype(np.float32)
    told = fp.train.full(saved(tmp_path / "parts", labels, features=features), **QUICK).summary["baselines"]
    assert told["scores"]["without_edges"]["test_accuracy"] == 1
    assert told["scores"]["label_propagation"]["test_accuracy"] < 0.8


def test_steps_of_adam_are_those_of_torch():
    random = torch.Generator().manual_seed(0)
    start, data = torch.randn(5, 3, generator=random), torch.randn(20, 5, generator=random)
    ours, theirs = (torch.nn.Parameter(start.clone()) for _ in range(2))
    mine, known = Adam([ours], 0.05, 0.01), torch.optim.Adam([theirs], 0.05, weight_decay=0.01)
    for _ in range(20):
        for weight, optimizer in ((ours, mine), (theirs, known)):
            (data @ weight).square().sum().backward()
            optimizer.step()
        theirs.grad = None
    torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", ["majority", "label_propagation", "without_edges"])
def test_predictions_do_not_depend_on_labels_of_test_vertices(tmp_path, name):
    labels = np.random.default_rng(2).integers(0, 3, 200)
    saved(tmp_path / "true", labels)
    poisoned = labels.copy()
    test = open_dataset(tmp_path / "true").whole().splits["test"].numpy()
    poisoned[test] = (poisoned[test] + 1) % 3
    saved(tmp_path / "poisoned", poisoned)
    found = []
    for source in ("true", "poisoned"):
        torch.manual_seed(0)
        found.append(outputs(tmp_path / source, name, tmp_path))
    assert np.array_equal(*found)


def test_baselines_are_the_same_for_any_parts_methods_and_workers(tmp_path, parts):
    other = planted(tmp_path, n=N, m=M, k=5, assignment=np.arange(N) * 7 % 5)
    (tmp_path / "by-edges").mkdir()
    by_edges = planted_edges(tmp_path / "by-edges", n=N, m=M)
    runs = [
        fp.train.full(parts, **QUICK),
        fp.train.full(other, **QUICK),
        fp.train.full(by_edges, **QUICK),
        fp.train.sampled(other, workers=2, batch_size=50, **QUICK),
        fp.train.sdt(parts, workers=1, **QUICK),
        fp.train.distgnn(by_edges, **QUICK),
    ]
    first, *others = [run.summary["baselines"]["scores"] for run in runs]
    assert set(first) == {"majority", "label_propagation", "without_edges"}
    assert others == [first] * len(others)


def test_baselines_of_edges_and_of_types(tmp_path):
    random = np.random.default_rng(0)
    records, x = random.integers(0, 80, (500, 2)), random.standard_normal((80, 4)).astype(np.float32)
    given = {"graph": fp.open_graph(records, num_vertices=80), "features": x}
    fold = random.integers(0, 10, 500)
    given["edge_labels"] = (x[records[:, 0], 0] > 0).astype(np.int64)
    given["edge_label_splits"] = {"train": fold < 6, "val": fold == 7, "test": fold > 7}
    found = []
    for k in (1, 3):
        fp.VertexPartition(np.arange(80) % k, k).save(tmp_path / f"edges-{k}", **given)
        with one_worker():
            found.append(fp.train.edges(tmp_path / f"edges-{k}", **QUICK).summary["baselines"])
    assert found[0]["scores"] == found[1]["scores"]
    assert found[0]["scores"]["without_edges"]["test_accuracy"] > 0.9
    assert list(found[0]["left_out"]) == ["label_propagation"]
    typed_parts(tmp_path, 2)
    with one_worker():
        typed = fp.train.sampled(tmp_path / "parts", model="rgcn", fanouts=[4, 3], **QUICK)
    assert set(typed.summary["baselines"]["scores"]) == {"majority", "label_propagation", "without_edges"}


def test_a_baseline_that_takes_too_long_is_left_out(parts, monkeypatch):
    monkeypatch.setattr(baselines, "SECONDS", 0.0)
    monkeypatch.setattr(baselines, "SHARE", 0.0)
    trained = fp.train.full(parts, **QUICK)
    left = trained.summary["baselines"]["left_out"]
    assert set(left) == {"label_propagation", "without_edges"}
    assert trained.summary["baselines"]["verdict"] is None
    assert "label propagation was left out: it takes longer than 0% of the training" in str(trained)


def test_what_a_baseline_cannot_read_leaves_it_out(tmp_path):
    labels = np.random.default_rng(2).integers(0, 3, 100)
    features = np.full((100, 2), np.nan, np.float32)
    with pytest.warns(fp.errors.GraphWarning):
        trained = fp.train.full(saved(tmp_path / "parts", labels, features=features), **QUICK)
    assert trained.summary["baselines"]["left_out"] == dict.fromkeys(
        baselines.BASELINES, "the training has no scores to compare with"
    )
    assert fp.train.full(tmp_path / "parts", baselines=False, **QUICK).summary.get("baselines") is None


def test_baselines_are_kept_in_the_folder_and_told(parts, tmp_path, capsys):
    out = tmp_path / "run"
    trained = fp.train.full(parts, out=out, **QUICK)
    found = trained.summary["baselines"]
    assert found["version"] == 1
    assert fp.train.open(out).summary == trained.summary
    assert json.loads((out / "fastpart-run.json").read_text())["summary"]["baselines"] == found
    assert "baselines" in fp.train.open(out).resume(epochs=4).summary
    assert main(["train", "full", str(parts), "--epochs", "3", "--hidden", "8", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["baselines"]["scores"] == found["scores"]
    accuracy = found["scores"]["label_propagation"]["test_accuracy"]
    line = next(line for line in str(trained).split("\n") if line.startswith("baselines"))
    assert f"label propagation {accuracy:.2f}" in line
    assert line.endswith(found["verdict"])
    assert found["verdict"] in repr(trained)
    assert f"label propagation {accuracy:.2f}" in trained._repr_html_()


def test_link_predictors_take_none():
    with pytest.raises(TypeError, match="baselines"):
        fp.train.links("parts", baselines=True)


@pytest.mark.parametrize(
    ("network", "without", "labels", "said"),
    [
        (0.9, 0.5, 0.6, "edges help"),
        (0.9, 0.5, 0.99, "edges help, and label propagation does better than this network"),
        (0.5, 0.5, 0.9, "edges help label propagation, but not this network"),
        (0.5, 0.9, 0.5, "edges do not help"),
        (0.52, 0.5, 0.5, "edges make no clear difference"),
    ],
)
def test_the_verdict_follows_from_the_scores(network, without, labels, said):
    task = baselines.Task(3, 2, multilabel=False)
    summary = {"test_accuracy": network}
    scores = {"without_edges": {"test_accuracy": without}, "label_propagation": {"test_accuracy": labels}}
    assert verdict(task, summary, scores, 400) == said
    assert verdict(task, summary, {}, 400) is None
