"""Models of users: what they may be, what is refused before workers start, and what workers import."""

import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import fastpart as fp
from edge_partitioned import planted_edges
from ranks import run_alone
from trainable import planted

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(180)]

QUICK = {"hidden": 8, "threads": 1, "epochs": 2}
BATCHES = {**QUICK, "batch_size": 100, "fanouts": [4, 3]}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=2, n=300, m=1500)


@pytest.fixture(scope="module")
def edge_parts(tmp_path_factory):
    return planted_edges(tmp_path_factory.mktemp("edges"), k=2)


@pytest.fixture(scope="module")
def link_parts(tmp_path_factory):
    ring = np.array([[v, (v + step) % 60] for v in range(60) for step in (1, 2, 3)])
    splits = fp.split_edges(ring)
    folder = tmp_path_factory.mktemp("links") / "parts"
    features = np.eye(60, dtype=np.float32)
    fp.algorithms.random(splits.graph, k=2, of="vertices").save(
        folder, graph=splits.graph, edge_splits=splits, features=features
    )
    return folder


@pytest.fixture
def no_process(monkeypatch):
    """Fail if a process is started."""

    def refuse(*arguments, **given):
        raise AssertionError("a process was started")

    monkeypatch.setattr("fastpart.runtime.watch.Supervisor.start", refuse)


# What a model may not be.


class OwnArguments(torch.nn.Module):
    def __init__(self, width, classes, bias):
        super().__init__()


class Widths(torch.nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.linear = torch.nn.Linear(width, classes)


REFUSED = {
    "an instance": (
        torch.nn.Linear(2, 2),
        fp.errors.ParameterError,
        r"^model: Linear cannot be called with \d+ features: TypeError: .*Its forward takes \(x, edge_index\), or",
    ),
    "no weights": (
        torch.nn.Identity,
        fp.errors.ParameterError,
        r"^model: .*Identity'> has no weights to train$",
    ),
    "own arguments": (
        OwnArguments,
        fp.errors.ParameterError,
        r"^model: .*OwnArguments'> cannot be made: TypeError: .*def make\(task, options\): return OwnArguments\(",
    ),
    "two own arguments": (
        Widths,
        fp.errors.ParameterError,
        r"^model: .*Widths'> cannot be made: TypeError: .* pass a function",
    ),
    "a lambda": (
        lambda task, options: Widths(task.features, task.classes),
        fp.errors.ParameterError,
        r"^model: other processes cannot import a lambda\. Define it at the top level",
    ),
}


@pytest.mark.usefixtures("no_process")
@pytest.mark.parametrize("what", REFUSED)
@pytest.mark.parametrize("method", ["sampled", "bytegnn", "sdt", "armada", "sancus"])
def test_what_is_no_model_is_refused_before_workers_start(parts, what, method):
    model, error, text = REFUSED[what]
    with pytest.raises(error, match=text):
        getattr(fp.train, method)(parts, **QUICK, model=model)


@pytest.mark.usefixtures("no_process")
@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_model_is_refused_for_edges(edge_parts, link_parts, what):
    model, error, text = REFUSED[what]
    for method, source in (("distgnn", edge_parts), ("links", link_parts)):
        with pytest.raises(error, match=text):
            getattr(fp.train, method)(source, **QUICK, model=model)


def test_one_process_trains_a_lambda_but_not_what_does_not_fit(parts, mine):
    trained = fp.train.full(
        parts, **QUICK, model=lambda task, options: fp.train.models.build(task, options.__class__())
    )
    assert trained.summary["epochs"] == 2
    for what in ("an instance", "no weights", "own arguments"):
        model, error, text = REFUSED[what]
        with pytest.raises(error, match=text):
            fp.train.full(parts, **QUICK, model=model)
    with pytest.raises(
        fp.errors.ParameterError,
        match=r"^model: .*:Mine cannot be called with 8 features: TypeError: .*Linear",
    ):
        fp.train.full(parts, **QUICK, model=mine("import torch\nMine = torch.nn.Linear(1, 1)"))


# Batch normalisation.

NORMALISED = """
from torch import nn
from fastpart.train.models import GraphSAGE

class Mine(GraphSAGE):
    def __init__(self, task, options):
        super().__init__(task, options)
        self.norm = nn.BatchNorm1d(task.features)

    def forward(self, graphs, x):
        return super().forward(graphs, self.norm(x))
"""

DEEP = """
from torch import nn
from fastpart.train.models import GraphSAGE

class Mine(GraphSAGE):
    def __init__(self, task, options):
        super().__init__(task, options)
        self.norm, self.later = nn.BatchNorm1d(task.features), nn.BatchNorm1d(options.hidden, momentum=None)

    def layer(self, index, graph, h):
        h = super().layer(index, graph, h if index else self.norm(h))
        return h if index else self.later(h)
"""

OF_TARGETS = """
from torch import nn
from fastpart.train.models import GraphSAGE

class Mine(GraphSAGE):
    def __init__(self, task, options):
        super().__init__(task, options)
        self.norm = nn.BatchNorm1d(task.classes)

    def forward(self, graphs, x):
        return self.norm(super().forward(graphs, x))
"""

REFUSAL = r"(?s)^model: its layer .*norm', a BatchNorm1d, normalises by statistics of a batch.* 2 copies .*LayerNorm"


@pytest.mark.usefixtures("no_process")
@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("armada", {"compute_workers": 2}),
        ("sdt", {"workers": 2}),
        ("sdt", {"workers": 1}),  # a copy for each part
        ("sdt", {"workers": 2, "average": "gradients"}),
    ],
)
def test_batch_norm_of_several_copies_is_refused(parts, mine, method, given):
    with pytest.raises(fp.errors.ParameterError, match=REFUSAL):
        getattr(fp.train, method)(parts, **QUICK, model=mine(NORMALISED), **given)


@pytest.mark.usefixtures("no_process")
def test_statistics_of_another_kind_are_refused(parts, edge_parts, mine):
    model = mine(
        NORMALISED.replace("BatchNorm1d(task", "InstanceNorm1d(track_running_stats=True, num_features=task")
    )
    text = REFUSAL.replace("a BatchNorm1d", "a InstanceNorm1d")
    with pytest.raises(fp.errors.ParameterError, match=text):
        fp.train.sampled(parts, **QUICK, model=model, workers=2)
    with pytest.raises(fp.errors.ParameterError, match=text):
        fp.train.distgnn(edge_parts, **QUICK, model=model)


@pytest.mark.parametrize("method", ["distgnn", "sancus"])
def test_batch_norm_of_parts_is_that_of_the_whole_graph(parts, edge_parts, mine, method):
    """Copies of vertices do not count: with them, statistics of `distgnn` would be others."""
    given = {**QUICK, "epochs": 3, "dropout": 0.0, "precision": "float64"}
    given["model"] = mine(DEEP)
    source = edge_parts if method == "distgnn" else parts
    trained, whole = getattr(fp.train, method)(source, **given), fp.train.full(source, **given)
    np.testing.assert_allclose(trained.history["loss"], whole.history["loss"], rtol=1e-9)
    for name, expected in whole.weights.items():
        np.testing.assert_allclose(trained.weights[name], expected, rtol=1e-7, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("method", ["sampled", "bytegnn"])
def test_batch_norm_of_workers_is_that_of_one(tmp_path, mine, method):
    """Some steps have vertices of one worker only, which the other one must not wait for."""
    n, random = 120, np.random.default_rng(0)
    labels, order = np.arange(n) // 60, random.permutation(n)
    splits = {"train": np.append(order[:10] % 60, [70, 71]), "val": order[30:60], "test": order[60:]}
    splits["train"] = np.unique(splits["train"])
    ring = np.array([[v, (v + 1) % n] for v in range(n)])
    x = random.normal(size=(n, 4)).astype(np.float32)
    fp.VertexPartition(labels, k=2).save(tmp_path / "p", graph=ring, features=x, labels=labels, splits=splits)
    given = {**QUICK, "batch_size": 4, "dropout": 0.0, "precision": "float64", "model": mine(OF_TARGETS)}
    one, two = (getattr(fp.train, method)(tmp_path / "p", workers=each, **given) for each in (1, 2))
    np.testing.assert_allclose(two.history["loss"], one.history["loss"], rtol=1e-9)


OF_A_USER = """
from torch import nn

class Mine(nn.Module):
    def __init__(self, task, options):
        super().__init__()
        self.norm, self.linear = nn.BatchNorm1d(task.features), nn.Linear(task.features, task.classes)

    def forward(self, x, edge_index):
        return self.linear(self.norm(x))
"""


@pytest.mark.parametrize("method", ["sampled", "full"])
def test_batch_norm_of_one_copy_is_trained(tmp_path, mine, method):
    """The parts are the classes, whose features differ: their statistics apart would hide the difference."""
    n, random = 120, np.random.default_rng(0)
    order, labels = random.permutation(n), np.arange(n) // 60
    x = random.normal(size=(n, 2)).astype(np.float32)
    x[60:] += 5
    splits = {"train": order[:60], "val": order[60:90], "test": order[90:]}
    ring = np.array([[v, (v + 1) % n] for v in range(n)])
    fp.VertexPartition(labels, k=2).save(tmp_path / "p", graph=ring, features=x, labels=labels, splits=splits)
    given = {"epochs": 30, "threads": 1, "layers": 1, "batch_size": 20, "lr": 0.05, "model": mine(OF_A_USER)}
    alone = {"workers": 1} if method == "sampled" else {}
    assert getattr(fp.train, method)(tmp_path / "p", **given, **alone).summary["test_accuracy"] > 0.95


# Weights and buffers of several workers.

OF_ITS_OWN = """
import os
import torch
from fastpart.train.models import GraphSAGE

class Mine(GraphSAGE):
    def __init__(self, task, options):
        super().__init__(task, options)
        mine = torch.Generator().manual_seed(1 + int(os.environ.get("RANK", "0")))
        for weight in self.parameters():
            weight.data = torch.randn(weight.shape, generator=mine)
        self.register_buffer("shift", torch.zeros(task.classes))
        self.register_buffer("seen", torch.tensor(False))

    def forward(self, graphs, x):
        if self.training:
            self.shift += int(os.environ.get("RANK", "0"))
            self.seen |= os.environ.get("RANK") == "1"
        logits = super().forward(graphs, x)
        return logits if self.training else logits + self.shift * torch.arange(len(self.shift))
"""


def assert_same(one, other):
    for name in ("loss", "val_f1"):
        np.testing.assert_allclose(one.history[name], other.history[name], rtol=1e-4, atol=1e-4)


def test_workers_begin_with_the_weights_of_the_first(parts, mine):
    given = {**BATCHES, "model": mine(OF_ITS_OWN), "dropout": 0.0}
    one = fp.train.sampled(parts, workers=1, **given)
    two = fp.train.sampled(parts, workers=2, **given)
    assert_same(one, two)
    assert (two.weights["shift"] == 0).all()
    assert not two.weights["seen"]
    by_gradients = fp.train.sdt(parts, workers=2, average="gradients", **{**QUICK, "model": given["model"]})
    assert (by_gradients.weights["shift"] == 0).all()


# Scripts that workers import.

HEAD = """
import sys
import torch
import fastpart as fp

class Net(torch.nn.Module):
    def __init__(self, task, options):
        super().__init__()
        self.linear = torch.nn.Linear(task.features, task.classes)

    def forward(self, x, edge_index):
        return self.linear(x)

{between}
{guard}
    print("accuracy", fp.train.sampled(sys.argv[1], model=Net, workers=2, epochs=2, threads=1).summary["test_accuracy"])
"""


def script(folder, *arguments, **filled):
    (folder / "script.py").write_text(HEAD.format(**{"between": "", **filled}))
    return python(folder, "script.py", *arguments)


def python(folder, *arguments):
    """Run Python in a folder, with the path of this process."""
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            "TMPDIR": tempfile.gettempdir(),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout, done.stderr


def test_a_script_with_a_guard_trains_its_class(parts, tmp_path):
    code, out, err = script(tmp_path, parts, guard='if __name__ == "__main__":')
    assert (code, err) == (0, "")
    assert out.startswith("accuracy 0.")


def test_a_script_without_a_guard_is_refused_before_workers_start(parts, tmp_path):
    code, out, err = script(tmp_path, parts, guard="if True:")
    assert (code, out) == (1, "")
    last = err.splitlines()[-1]
    assert last.startswith("fastpart.errors.ParameterError: model: workers import Net from ")
    assert 'Put the call below `if __name__ == "__main__":`, or move the model to a file of its own' in last


def test_workers_do_not_train_while_they_import_a_script(parts, tmp_path):
    """The script looks as if it had a guard."""
    code, _, err = script(tmp_path, parts, guard='if "main" in __name__ or "script" in __name__:')
    assert code == 1
    assert "the import of " in err
    assert "script.py calls fastpart.train. Put the call below `if __name__" in err
    assert err.count("The other processes were stopped") == 1


def test_a_model_in_a_module_that_trains_is_refused(parts, tmp_path):
    file = tmp_path / "trains.py"
    file.write_text(
        "import fastpart as fp\nfp.train.full('parts', epochs=1)\nclass Mine: pass\n".replace(
            "parts", str(parts)
        )
    )
    with pytest.raises(
        fp.errors.ParameterError,
        match=r"model: the import of .*trains.py calls fastpart.train\. Put the call",
    ):
        fp.train.sampled(parts, model=f"{file}:Mine", **QUICK)


# What workers import.


def test_workers_do_not_import_what_lies_in_the_current_folder(parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("torch", "random", "queue", "fastpart"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(f'{__file__} was imported')")
    (tmp_path / "helper.py").write_text("from fastpart.train.models import GraphSAGE")
    (tmp_path / "own.py").write_text("from helper import GraphSAGE\nclass Mine(GraphSAGE):\n    pass")
    words = ["train", "sampled", parts, "--epochs", "1", "--threads", "1", "--workers", "2", "--quiet"]
    for model in ("own:Mine", "own.py:Mine"):
        done = run_alone("fastpart", *words, "--model", model)
        assert (done.code, done.errors) == (0, "")
        assert "sampled" in done.out


PRINTS = """
import warnings
from fastpart.train.models import GraphSAGE

class Mine(GraphSAGE):
    def __init__(self, task, options):
        super().__init__(task, options)
        print("classes", task.classes)
        warnings.warn("an old layer", stacklevel=1)
"""


def test_what_a_model_prints_is_shown_but_not_among_results(parts, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(PRINTS)
    words = ["train", "sampled", parts, "--epochs", "1", "--threads", "1", "--workers", "2", "--json"]
    done = run_alone("fastpart", *words, "--model", "own:Mine")
    assert done.code == 0, done.errors
    assert json.loads(done.out)["summary"]["workers"] == 2
    first, second, note, warning = sorted(done.errors.splitlines(), key=lambda line: (len(line), line))
    assert note == "fastpart: note: starting 2 workers"
    assert (first, second) == ("worker 0: classes 4", "worker 1: classes 4")
    assert "UserWarning: an old layer (" in warning
    words[1] = "full"
    del words[-3:-1]
    done = run_alone("fastpart", *words, "--model", "own:Mine")
    assert done.code == 0, done.errors
    assert json.loads(done.out)["summary"]["method"] == "full"
    assert "classes 4" in done.errors
