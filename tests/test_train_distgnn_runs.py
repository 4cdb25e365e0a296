"""Full batches over parts of the edges, with real processes: what one process computes, and whatever the parts hold."""

import json
import os
import re
from contextlib import redirect_stdout
from io import StringIO

import numpy as np
import pytest

import fastpart as fp
from edge_partitioned import edge_parts_of, planted_edges
from fastpart.cli import main
from ranks import run_ranks

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("one_thread")]

QUICK = {"hidden": 8, "heads": 2, "epochs": 5, "threads": 1}
FEW = QUICK
"""Processes that import no DGL start sooner."""


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted_edges(tmp_path_factory.mktemp("two"), k=2)


def assert_close(one, other, tolerance=1e-4):
    """Assert that two trainings had the same losses and scores, and came to the same weights."""
    for name in ("loss", "val_f1", "val_accuracy"):
        np.testing.assert_allclose(one.history[name], other.history[name], atol=tolerance)
    for name in ("best_epoch", "val_f1", "test_f1", "test_accuracy"):
        np.testing.assert_allclose(one.summary[name], other.summary[name], atol=tolerance, err_msg=name)
    assert one.weights.keys() == other.weights.keys()
    for name, weight in one.weights.items():
        torch.testing.assert_close(weight, other.weights[name], atol=tolerance, rtol=0)


def both(parts, **given):
    """Return what the processes came to, and what one process came to that knows no parts."""
    options = {name: value for name, value in given.items() if name not in ("delay", "exchange")}
    return fp.train.distgnn(parts, **given), fp.train.full(parts, **options)


# The same as in one process.


@pytest.mark.parametrize(("model", "dropout"), [("graphsage", 0.5), ("gcn", 0.5), ("gat", 0.0)])
def test_training_is_that_of_one_process(tmp_path, model, dropout):
    parts = planted_edges(tmp_path, k=3)
    given = {**QUICK, "epochs": 10, "model": model, "dropout": dropout}
    trained, full = both(parts, **given)
    assert_close(trained, full)
    measured = json.loads((parts / "manifest.json").read_text())["summary"]
    expected = {
        "method": "distgnn",
        "delay": 0,
        "exchange": "always",
        "parts": 3,
        "replication_factor": measured["rf"],
    }
    assert expected.items() <= trained.summary.items()
    assert [row["worker"] for row in trained.summary["per_worker"]] == [0, 1, 2]
    assert sum(row["roots"] for row in trained.summary["per_worker"]) == measured["n"]
    first, *later = trained.history["remote_bytes"]  # sums over features are sent once
    assert trained.summary["remote_bytes"] == round(np.mean(later)) > 0
    assert first > max(later) or model == "gat"
    assert (trained.history["worker_bytes"] > 0).all()
    assert trained.summary["peak_bytes"] > trained.history["worker_bytes"].max() / 2


def test_several_labels(tmp_path):
    labels = np.random.default_rng(0).integers(0, 2, (300, 5))
    trained, full = both(planted_edges(tmp_path, k=2, labels=labels), **FEW)
    assert_close(trained, full)
    assert trained.summary["val_f1"] != trained.summary["val_accuracy"]


def test_one_part(tmp_path):
    trained, full = both(planted_edges(tmp_path, k=1), **FEW)
    assert_close(trained, full, 1e-6)
    assert (trained.history["remote_bytes"] == 0).all()
    assert trained.out is None


def test_parts_that_hold_little(tmp_path):
    """Part 1 has no training vertex, part 2 no edge; a third of the vertices have no label, and some no neighbour."""
    random = np.random.default_rng(0)
    edges = np.concatenate([random.integers(0, 30, (90, 2)), random.integers(30, 60, (90, 2))])
    labels = random.integers(0, 3, 70)
    labels[::3] = -1
    splits = {
        "train": np.r_[0:20, 60:62],
        "val": np.r_[20:40, 62:64],
        "test": np.r_[40:60, 64:66],
    }
    assignment = np.repeat([0, 1], 90)
    folder = edge_parts_of(tmp_path / "parts", 70, edges, assignment, 3, labels=labels, splits=splits)
    trained, full = both(folder, **FEW, dropout=0.2)
    assert_close(trained, full)
    assert [row["edges"] for row in trained.summary["per_worker"]][2] == 0


def test_training_vertices_alone(tmp_path):
    splits = {"train": np.arange(10)}
    trained, full = both(planted_edges(tmp_path, k=2, splits=splits), **{**FEW, "epochs": 2})
    assert_close(trained, full)
    assert np.isnan(trained.summary["val_f1"])
    assert trained.summary["best_epoch"] == 1  # the last one


def test_labels_that_teach_nothing(tmp_path):
    trained, full = both(planted_edges(tmp_path, k=2, labels=np.zeros(300, int)), **FEW)
    assert_close(trained, full)
    assert (trained.history["loss"] == 0).all()
    assert trained.summary["test_accuracy"] == 1


def test_features_that_are_no_numbers(tmp_path):
    features = np.ones((300, 4), np.float32)
    features[17] = np.nan
    trained, full = both(planted_edges(tmp_path, k=2, features=features), **FEW)
    assert trained.history["loss"].is_nan().all()
    assert full.history["loss"].is_nan().all()
    assert np.isnan([trained.summary["test_f1"], full.summary["test_f1"]]).all()
    assert str(trained)


# Checkpoints.


def stop_after(epochs):
    def progress(_, done, __):
        if done == epochs:
            raise InterruptedError

    return progress


@pytest.mark.parametrize("delay", [0, 2])
def test_resuming_is_going_on(parts, tmp_path, delay):
    given = {**FEW, "delay": delay, "epochs": 8}
    with pytest.raises(InterruptedError):
        fp.train.distgnn(parts, **given, out=tmp_path / "out", progress=stop_after(3))
    checkpoint = torch.load(tmp_path / "out" / "checkpoint.pt", weights_only=True)
    assert 0 < len(json.loads(checkpoint["rows"])) < 8
    went_on = fp.train.distgnn(parts, **given, out=tmp_path / "out", resume=True)
    assert went_on.history["epoch"].to_list() == list(range(8))
    assert went_on.history["loss"].is_finite().all()
    files = {file.name for file in (tmp_path / "out").iterdir()}
    assert files == {"best.pt", "checkpoint.pt", "fastpart-run.json", "history.parquet"}
    if delay == 0:
        at_once = fp.train.distgnn(parts, **given)
        for name in ("loss", "val_f1", "val_accuracy", "evaluation_bytes"):
            assert went_on.history[name].to_list() == at_once.history[name].to_list()
        assert went_on.weights.keys() == at_once.weights.keys()
        assert all(torch.equal(weight, at_once.weights[name]) for name, weight in went_on.weights.items())
    others = {"delay": 1}, {"lr": 0.5}
    for other in others:
        with pytest.raises(fp.errors.ParameterError, match=rf"out was trained with {next(iter(other))} = "):
            fp.train.distgnn(parts, **{**given, **other}, out=tmp_path / "out", resume=True)


def test_patience_ends_all_workers(parts):
    trained = fp.train.distgnn(parts, **{**FEW, "epochs": 1000}, patience=3)
    assert trained.summary["epochs"] == trained.summary["best_epoch"] + 4 < 1000
    assert (trained.history["val_f1"][-4:] <= trained.summary["val_f1"]).all()


# Models of the user.

MINE = """
from torch import nn
from fastpart.train.models.network import Network

class Mean(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.linear = nn.Linear(width, out)

    def forward(self, graph, x):
        return self.linear(graph.mean(x) + graph.targets(x))

class Mine(Network):
    def make_layer(self, index, width, out, task, options):
        return Mean(width, out)
"""


def test_a_model_written_against_neighbourhoods(parts, mine):
    assert_close(*both(parts, **FEW, model=mine(MINE)))


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

    def forward(self, graphs, x):
        logits = super().forward(graphs, x)
        if self.training:
            self.shift += int(os.environ.get("RANK", "0"))
        return logits + (0 if self.training else self.shift * torch.arange(len(self.shift)))
"""


def test_workers_agree_on_what_a_model_makes_up(parts, mine):
    """Weights and buffers that differ at each worker are those of worker 0."""
    trained, full = both(parts, **FEW, model=mine(OF_ITS_OWN))
    assert_close(trained, full)
    assert (trained.weights["shift"] == 0).all()


# From the command line.


WORDS = ("--hidden", "8", "--heads", "2", "--epochs", "5", "--threads", "1")


def command(*words):
    return ["train", "distgnn", *map(str, [*words, *WORDS])]


@pytest.fixture(scope="module")
def late(parts, tmp_path_factory):
    """Return what the command prints as JSON, and the folder that it fills."""
    folder = tmp_path_factory.mktemp("late") / "run"
    with redirect_stdout(StringIO()) as out:
        assert main(command(parts, "-o", folder, "--delay", 2, "--json")) == 0
    return json.loads(out.getvalue()), folder


def test_the_command_prints_json(parts, late):
    content, folder = late
    assert [row["epoch"] for row in content["history"]] == list(range(5))
    assert content["summary"]["delay"] == 2
    assert {"best.pt", "checkpoint.pt", "history.parquet"} <= set(os.listdir(folder))
    # There is nothing left to do.
    trained = fp.train.distgnn(parts, **FEW, delay=2, out=folder, resume=True)
    assert [row["loss"] for row in content["history"]] == trained.history["loss"].to_list()
    assert content["summary"]["test_f1"] == trained.summary["test_f1"]


def test_the_command_prints_a_table(parts, tmp_path, capsys):
    code = main(command(parts, "-o", tmp_path / "run", "--delay", 2))
    out, errors = capsys.readouterr()
    assert code == 0
    assert re.fullmatch(r"fastpart: note: starting \d workers\n", errors)
    assert out.split("\n")[0].split()[:4] == ["epoch", "loss", "val_accuracy", "val_f1"]
    assert re.search(r"^method +distgnn$", out, re.MULTILINE)
    assert re.search(r"^delay +2$", out, re.MULTILINE)
    assert re.search(r"^replication_factor +1\.\d{4}$", out, re.MULTILINE)
    assert out.endswith(f"saved to {tmp_path / 'run'}\n")


def test_ranks_of_a_launcher(parts, tmp_path, late):
    done, _ = run_ranks(
        "fastpart", "train", "distgnn", parts, "-o", tmp_path / "run", "--delay", 2, "--json", *WORDS
    )
    assert done.code == 0, done.errors
    content = json.loads(done.out)
    expected, _ = late
    for name in ("loss", "val_f1", "remote_bytes"):
        found, others = ([row[name] for row in run["history"]] for run in (content, expected))
        np.testing.assert_allclose(found, others, atol=1e-6)
    for name in ("test_f1", "replication_factor", "parts"):
        assert content["summary"][name] == expected["summary"][name]
