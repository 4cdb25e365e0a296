"""Centralized training: what is learned, what is kept, and what is refused."""

import json
import shutil
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import fastpart as fp
from ranks import run_alone
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import Dataset  # noqa: E402
from fastpart.train.models import MODELS, GraphSAGE, import_path  # noqa: E402
from fastpart.train.models.scores import Task, score  # noqa: E402
from fastpart.train.runs.run_folder import load_weights  # noqa: E402

QUICK = {"hidden": 8, "threads": 1, "heads": 2}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=2)


@pytest.fixture(scope="module")
def several(tmp_path_factory):
    """A directory whose labels are several classes: the community, its parity, and one that all have."""
    folder = tmp_path_factory.mktemp("several")
    planted(folder)
    labels = np.load(folder / "g.bin.labels.npy")
    rows = np.concatenate([np.eye(4)[labels], labels[:, None] % 2, np.ones((len(labels), 1))], axis=1)
    return planted(folder, labels=rows), rows


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


# What is learned.


@pytest.mark.parametrize("size", [None, 64])
@pytest.mark.parametrize("name", MODELS)
def test_every_model_learns_communities(parts, name, size):
    given = {"epochs": 25, "lr": 0.3 if name == "sgc" else 0.02, "batch_size": size, "fanouts": [5, 5]}
    trained = fp.train.full(parts, model=name, **QUICK, **given)
    assert trained.summary["test_accuracy"] > 0.85  # 0.25 by chance
    assert trained.summary["val_f1"] == trained.summary["val_accuracy"] > 0.85
    losses = trained.history["loss"]
    assert losses[-1] < losses[0] / 2
    assert trained.history["epoch"].to_list() == list(range(25))


@pytest.mark.parametrize("name", ["graphsage", "clustergcn", "graphsaint"])
def test_several_classes_for_each_vertex_are_learned(several, name):
    trained = fp.train.full(several[0], model=name, epochs=40, lr=0.03, **QUICK)
    assert trained.task == Task(8, 6, multilabel=True)
    assert trained.summary["test_f1"] > 0.9
    assert 0.6 < trained.summary["test_accuracy"] < trained.summary["test_f1"]


@pytest.mark.dgl
def test_several_classes_go_from_labels_to_exports(several, tmp_path):
    dgl = pytest.importorskip("dgl")
    folder, rows = several
    assert json.loads((folder / "manifest.json").read_text())["labels"] == {"dtype": "uint8", "shape": [6]}
    config = fp.export.dgl(folder, tmp_path / "dgl")
    for part in fp.open_partition(folder).parts:
        assert part.labels.dtype == np.uint8
        assert (part.labels == rows[part.inner]).all()
        data = dgl.data.utils.load_tensors(str(config.parent / f"part{part.index}" / "node_feat.dgl"))
        assert data["_N/label"].dtype == torch.uint8
        assert (data["_N/label"].numpy() == part.labels).all()
    label = torch.load(fp.export.pyg(folder, tmp_path / "pyg") / "label.pt")
    assert label.dtype == torch.uint8
    assert (label.numpy() == rows).all()
    whole = Dataset(folder).whole()
    assert whole.labels.dtype == torch.float32
    assert (whole.labels.numpy() == rows).all()


def test_unlabelled_vertices_are_neither_learned_nor_counted(tmp_path):
    planted(tmp_path)
    labels = np.load(tmp_path / "g.bin.labels.npy")
    labels[::3] = -1
    dataset = Dataset(planted(tmp_path, labels=labels))
    for local in (dataset.whole(), dataset.part(0)):
        for ids in local.splits.values():
            assert (local.labels[ids] >= 0).all()
    everywhere = sum(len(ids) for ids in dataset.whole().splits.values())
    assert everywhere == (labels >= 0).sum()
    assert fp.train.full(dataset.path, epochs=3, **QUICK).summary["test_accuracy"] > 0.25


def test_without_validation_vertices_the_last_epoch_is_the_best(tmp_path):
    path = planted(tmp_path, splits={"train": np.arange(300)})
    with pytest.warns(
        fp.errors.GraphWarning, match=r"nothing labelled to validate on, so the last epoch counts as the best"
    ):
        trained = fp.train.full(path, epochs=4, **QUICK)
    assert trained.summary["best_epoch"] == 3
    assert np.isnan(trained.summary["val_f1"])
    trained.plot(tmp_path / "history.svg")
    assert (tmp_path / "history.svg").read_text().count("over the training vertices") > 0


def test_patience_needs_something_to_validate_on(tmp_path):
    path = planted(tmp_path, k=2, splits={"train": np.arange(300)})
    for method in ("full", "sampled"):
        with pytest.raises(
            fp.errors.ParameterError,
            match=r"^patience: .*nothing labelled to validate on.*leave out patience",
        ):
            getattr(fp.train, method)(path, patience=3, **QUICK)


# Scores.


def naive_f1(said, true):
    both, wrong = int((said & true).sum()), int((said != true).sum())
    return 2 * both / (2 * both + wrong) if both or wrong else float("nan")


@given(st.data(), st.integers(0, 20), st.integers(1, 5))
def test_scores_of_several_classes(data, n, classes):
    true, said = (data.draw(arrays.arrays(bool, (n, classes))) for _ in range(2))
    logits = torch.from_numpy(np.where(said, 0.5, -2.0))
    found = score(Task(1, classes, True).tally(logits, torch.from_numpy(true).float()))
    np.testing.assert_equal(found["f1"], naive_f1(said, true))
    exact = [list(one) == list(other) for one, other in zip(said, true, strict=True)]
    np.testing.assert_equal(found["accuracy"], sum(exact) / n if n else float("nan"))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=20))
def test_scores_of_one_class(pairs):
    said, true = (np.array([pair[i] for pair in pairs], int) for i in range(2))
    found = score(Task(1, 4, False).tally(torch.from_numpy(np.eye(4)[said]), torch.from_numpy(true)))
    accuracy = (said == true).mean() if pairs else float("nan")
    np.testing.assert_equal(found["accuracy"], accuracy)
    np.testing.assert_allclose(
        found["f1"], naive_f1(np.eye(4, dtype=bool)[said], np.eye(4, dtype=bool)[true])
    )


def test_tallies_add_up():
    task, true = Task(1, 3, False), torch.tensor([0, 1, 2, 2, 1])
    logits = torch.randn(5, 3, generator=torch.Generator().manual_seed(1))
    assert torch.equal(
        task.tally(logits, true), task.tally(logits[:2], true[:2]) + task.tally(logits[2:], true[2:])
    )


# Models of users.

MODEL = """
from fastpart.train.models import GraphSAGE

class Mine(GraphSAGE):
    pass
"""


def test_models_of_users_by_path_by_file_and_as_objects(parts, tmp_path, monkeypatch):
    (tmp_path / "users_models.py").write_text(MODEL)
    monkeypatch.syspath_prepend(tmp_path)
    expected = fp.train.full(parts, epochs=2, **QUICK).weights
    for model in ("users_models:Mine", f"{tmp_path}/users_models.py:Mine", GraphSAGE):
        assert same(fp.train.full(parts, model=model, epochs=2, **QUICK).weights, expected)


def test_classes_of_scripts_are_found_by_other_processes(parts, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        MODEL
        + "if __name__ == '__main__':\n    from fastpart.train.models import import_path\n    print(import_path(Mine))"
    )
    told = subprocess.run(
        [sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == f"{script}:Mine"
    expected = fp.train.full(parts, epochs=1, **QUICK).weights
    assert same(fp.train.full(parts, model=told.stdout.strip(), epochs=1, **QUICK).weights, expected)


def test_classes_that_other_processes_do_not_find():
    with pytest.raises(fp.errors.ParameterError, match="Define it at the top level of a module or file"):
        import_path(lambda task, options: None)


NOTEBOOK = """
import sys
import fastpart as fp

CELLS = ['''
%matplotlib inline
import torch
from fastpart.train.models import Network
from fastpart.train.graphs.neighbourhood import dropped as drop
SLOPE = {"negative_slope": 0.1}
''', '''
class Own(torch.nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.map = torch.nn.Linear(width, out)

    def forward(self, graph, x):
        return twice(drop(self.map(graph.mean(x) + graph.targets(x)), 0.0, graph))

def twice(h):
    return torch.nn.functional.leaky_relu(2 * h, **SLOPE)

class Mine(Network):
    def make_layer(self, index, width, out, task, options):
        return Own(width, out)
''', '''
class Bad(Mine):
    def extra(self):
        return LIST
LIST = object()
''']
In = []
for cell in CELLS:
    In.append(cell)
    exec(cell.replace("%matplotlib inline", ""))

parts, out = sys.argv[1:]
given = dict(hidden=8, threads=1, epochs=3, dropout=0.0)
full = fp.train.full(parts, model=Mine, **given)
sdt = fp.train.sdt(parts, model=Mine, parts=1, out=out, **given)
print(full.history["loss"].to_list() == sdt.history["loss"].to_list())
again = fp.train.sdt(parts, model=Mine, parts=1, out=out, resume=True, **given)
print(again.history.equals(sdt.history))
try:
    fp.train.sdt(parts, model=Bad, **given)
except fp.errors.ParameterError as error:
    print(error)
"""


def test_models_of_notebooks_train_with_every_method(parts, tmp_path):
    done = run_alone("ranks", NOTEBOOK, parts, tmp_path / "out")
    assert done.code == 0, done.errors
    same, resumed, refusal = done.out.splitlines()
    assert (same, resumed) == ("True", "True")
    assert refusal.startswith(
        "model: it uses 'LIST' of the notebook, a object, which other processes do not have"
    )


def mean_of(task, options):
    """Return a network that takes an edge_index, as PyG's do, without PyG."""

    class Mean(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.map = torch.nn.Linear(2 * task.features, task.classes)

        def forward(self, x, edge_index):
            source, target = edge_index
            total = torch.zeros_like(x).index_add(0, target, x[source])
            count = torch.zeros(len(x)).index_add(0, target, torch.ones(len(target))).clamp(min=1)
            return self.map(torch.cat([x, total / count.unsqueeze(1)], 1))

    return Mean()


def graphsage_of_pyg(task, options):
    models = pytest.importorskip("torch_geometric.nn")
    return models.GraphSAGE(task.features, options.hidden, options.layers, task.classes)


@pytest.mark.parametrize("model", [mean_of, graphsage_of_pyg])
@pytest.mark.parametrize("size", [None, 100])
def test_models_with_an_edge_index_train_as_they_are(parts, model, size):
    trained = fp.train.full(parts, model=model, epochs=20, lr=0.05, batch_size=size, **QUICK)
    assert trained.summary["test_accuracy"] > 0.8
    whole = Dataset(parts).whole()
    logits = trained.network().model(whole.features, whole.graph.edge_index)
    ids = whole.splits["test"]
    accuracy = (logits[ids].argmax(1) == whole.labels[ids]).float().mean().item()
    assert accuracy == pytest.approx(trained.summary["test_accuracy"])


def test_any_module_with_a_forward_will_do(parts):
    class Linear(torch.nn.Module):
        def __init__(self, task, options):
            super().__init__()
            self.map = torch.nn.Linear(task.features, task.classes)

        def forward(self, graphs, x):
            return self.map(graphs[-1].targets(x))

    for size in (None, 100):
        trained = fp.train.full(parts, model=Linear, epochs=20, lr=0.1, batch_size=size, **QUICK)
        assert trained.summary["test_accuracy"] > 0.5


def test_a_changed_file_is_read_again(parts, tmp_path):
    file = tmp_path / "models.py"
    file.write_text(MODEL)
    fp.train.full(parts, model=f"{file}:Mine", epochs=1, **QUICK)
    file.write_text(MODEL.replace("Mine", "Another"))
    fp.train.full(parts, model=f"{file}:Another", epochs=1, **QUICK)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (
            "graphsge",
            "model: unknown value 'graphsge'. Valid values are 'graphsage', .*'gcn', .*module:Class or file.py:Class",
        ),
        ("no_such_module:Model", "model: no_such_module:Model: No module named 'no_such_module'"),
        ("json:Model", "model: json:Model: module 'json' has no attribute 'Model'"),
        ("absent.py:Model", "model: absent.py:Model: .*absent.py"),
        ("broken.py:Model", "model: broken.py:Model: "),
        (lambda task, options: 7, "returned a int instead of a torch.nn.Module"),
    ],
)
def test_models_that_are_refused(parts, tmp_path, monkeypatch, model, text):
    (tmp_path / "broken.py").write_text("def (")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(fp.errors.ParameterError, match=text):
        fp.train.full(parts, model=model, epochs=1, **QUICK)


# What is refused.


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"fanouts": [5]}, fp.errors.ParameterError, "fanouts: 1 numbers for 2 layers"),
        ({"fanouts": [5, -2]}, fp.errors.ParameterError, "fanouts: -2"),
        ({"fanouts": 5}, TypeError, "fanouts: expected a list of integers"),
        ({"dropout": 1.0}, fp.errors.ParameterError, "dropout: 1.0"),
        ({"dropout": float("nan")}, fp.errors.ParameterError, "dropout: "),
        ({"lr": 0}, fp.errors.ParameterError, "lr: "),
        ({"weight_decay": -1}, fp.errors.ParameterError, "weight_decay: "),
        ({"epochs": 0}, fp.errors.ParameterError, "epochs: "),
        ({"layers": True}, TypeError, "layers: "),
        ({"batch_size": 0}, fp.errors.ParameterError, "batch_size: "),
        ({"model": 7}, TypeError, "model: expected a name, a class or a network, got int"),
        ({"resume": True}, fp.errors.ParameterError, "resume: needs out="),
        ({"resume": 1}, TypeError, "resume: "),
    ],
)
def test_parameters_that_are_refused(parts, given, error, text):
    with pytest.raises(error, match=text):
        fp.train.full(parts, **{"threads": 1, **given})


@pytest.mark.parametrize(
    ("saved", "text"),
    [
        ({"features": None}, "holds no features. Save the partition with p.save.DIR, features=...."),
        ({"labels": None, "splits": None}, "holds no labels, no splits. Save"),
        ({"splits": {"val": [1]}}, "holds no splits"),
        ({"splits": {"train": []}}, "has no labelled vertex to train on"),
        ({"labels": np.full(600, -1)}, "has no labelled vertex to train on"),
        (
            {"labels": np.full(600, 10**9)},
            "a model would have 1,000,000,001 outputs, more than there are vertices",
        ),
        ({"labels": np.zeros((600, 2), bool), "splits": {"train": []}}, "has no labelled vertex to train on"),
        (
            {"features": np.zeros((600, 2, 3), np.float32)},
            r"features of shape \(n, width\), got \(n, 2, 3\)",
        ),
        ({"halo_hops": 0}, "lacks the edges between parts. Save the partition with halo_hops=1"),
    ],
)
def test_directories_that_are_refused(tmp_path, saved, text):
    with pytest.raises(fp.errors.ParameterError, match=f"source: .*{text}"):
        fp.train.full(planted(tmp_path, **saved), epochs=1, **QUICK)


def test_other_sources_that_are_refused(tmp_path):
    fp.VertexPartition([0, 1, 0], 2).save(tmp_path / "bare")
    with pytest.raises(
        fp.errors.ParameterError, match=r"holds no graph, no features, no labels, no splits\. .*graph=\.\.\."
    ):
        fp.train.full(tmp_path / "bare")
    with pytest.raises(FileNotFoundError, match="absent"):
        fp.train.full(tmp_path / "absent")


@pytest.mark.parametrize("bad", ["values", "dtype", "shape", "manifest"])
def test_damaged_labels_are_refused(several, tmp_path, bad):
    folder = shutil.copytree(several[0], tmp_path / "parts")
    file, manifest = folder / "part-00000" / "labels.npy", folder / "manifest.json"
    labels = np.load(file)
    if bad == "manifest":
        content = json.loads(manifest.read_text())
        manifest.write_text(json.dumps(content | {"labels": {"dtype": "float32", "shape": [6]}}))
        np.save(file, labels.astype(np.float32))
    else:
        np.save(file, {"values": labels + 1, "dtype": labels.astype(np.int64), "shape": labels[:, :5]}[bad])
    with pytest.raises(fp.errors.GraphFormatError, match=r"labels: expected one int64|labels\.npy: "):
        fp.train.full(folder, epochs=1, **QUICK)


# What is left behind.


def test_random_state_and_threads_are_as_before(parts):
    torch.manual_seed(11)
    np.random.seed(11)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), torch.get_num_threads()  # noqa: NPY002
    fp.train.full(parts, epochs=1, hidden=8, threads=2)
    for name in MODELS:
        fp.train.full(parts, model=name, epochs=1, batch_size=200, **QUICK)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002
    assert torch.get_num_threads() == before[2]


@pytest.mark.parametrize("name", ["graphsage", "gat", "clustergcn", "graphsaint"])
def test_the_seed_says_what_comes_out(parts, name):
    given = {"model": name, "epochs": 3, "batch_size": 100, **QUICK}
    first, again, other = (fp.train.full(parts, seed=seed, **given) for seed in (1, 1, 2))
    assert same(first.weights, again.weights)
    assert not same(first.weights, other.weights)


def test_output_holds_weights_metrics_and_a_plot(parts, tmp_path):
    trained = fp.train.full(parts, epochs=5, out=tmp_path / "out", **QUICK)
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == ["best.pt", "checkpoint.pt", "fastpart-run.json", "history.parquet"]
    assert pl.read_parquet(tmp_path / "out" / "history.parquet").equals(trained.history)
    assert same(torch.load(tmp_path / "out" / "best.pt", weights_only=True), trained.weights)
    assert same(load_weights(tmp_path / "out" / "best.pt"), trained.weights)
    torch.load(tmp_path / "out" / "checkpoint.pt", weights_only=True)
    trained.plot(tmp_path / "history.svg")
    svg = (tmp_path / "history.svg").read_text()
    assert "loss over the training vertices" in svg
    assert "score over the validation vertices" in svg
    network, whole = trained.network(), Dataset(parts).whole()
    predicted = network([whole.graph] * 2, whole.features).argmax(1)
    test = whole.splits["test"]
    assert (predicted[test] == whole.labels[test]).float().mean().item() == pytest.approx(
        trained.summary["test_accuracy"]
    )
    with pytest.raises(
        fp.errors.ParameterError, match=r"out: unknown suffix '\.gif' of .* Use \.svg, \.png or \.pdf"
    ):
        trained.plot(tmp_path / "a.gif")
