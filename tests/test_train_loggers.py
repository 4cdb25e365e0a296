"""Callbacks, and the loggers that are some."""

import json
import subprocess
import sys
import types

import numpy as np
import pytest

import fastpart as fp
from trainable import planted

pytest.importorskip("torch")

from fastpart.cli import main
from fastpart.train.loggers import JsonLines, MLflow, TensorBoard, WandB

QUICK = {"epochs": 3, "hidden": 8, "threads": 1, "eval_every": 2}


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=2, n=300, m=1500)


class Told:
    """What a callback was told."""

    def __init__(self):
        self.rows, self.ends = [], []

    def on_epoch(self, row):
        self.rows.append(row)

    def on_end(self, trained):
        self.ends.append(trained)


@pytest.mark.parametrize("method", ["full", "sampled", "sdt", "sancus"])
def test_callbacks_get_every_row_and_the_result_here(parts, method):
    told, seen = Told(), []
    only_end = types.SimpleNamespace(on_end=lambda trained: seen.append(trained.summary))
    alone = {"workers": 1} if method in ("sampled", "sdt") else {}
    trained = getattr(fp.train, method)(
        parts, **QUICK, **alone, callbacks=[told, only_end], on_epoch=lambda row: seen.append(row["epoch"])
    )
    assert [row["loss"] for row in told.rows] == trained.history["loss"].to_list()
    assert told.ends == [trained]
    assert seen == [0, 1, 2, trained.summary]


@pytest.mark.parametrize(
    ("method", "given", "steps"),
    [
        ("full", {"batch_size": 50}, 3),
        ("sampled", {"workers": 2, "batch_size": 50}, 3),
        ("armada", {"batch_size": 50}, 3),
        ("sdt", {"workers": 2, "average": "gradients"}, 1),
        ("sdt", {"workers": 1}, 0),
        ("sancus", {}, 1),
    ],
)
def test_steps_are_told_before_their_epoch(parts, method, given, steps):
    told = []
    callback = types.SimpleNamespace(on_step=told.append, on_epoch=told.append)
    trained = getattr(fp.train, method)(parts, **QUICK, **given, callbacks=[callback])
    losses = trained.history["loss"].to_list()
    for epoch, loss in enumerate(losses):
        *rows, last = told[epoch * (steps + 1) : (epoch + 1) * (steps + 1)]
        assert (last["epoch"], last["loss"], "steps" in last) == (epoch, loss, False)
        assert [(row["epoch"], row["step"]) for row in rows] == [(epoch, step) for step in range(steps)]
        if steps:  # all of 150 training vertices, 50 in each step
            assert np.mean([row["loss"] for row in rows]) == pytest.approx(loss)
    assert len(told) == 3 * (steps + 1)


def test_callbacks_are_not_kept(parts, tmp_path):
    told = Told()
    fp.train.full(parts, **QUICK, callbacks=[told], out=tmp_path / "run")
    fp.train.open(tmp_path / "run").resume(epochs=4)
    assert (len(told.rows), len(told.ends)) == (3, 1)


@pytest.mark.parametrize(
    ("callbacks", "text"),
    [
        ([3], "callbacks: a int has none of on_step, on_epoch, on_end"),
        (Told(), "callbacks: expected a list of objects, got Told"),
        ("logger", "callbacks: expected a list of objects, got str"),
        ([Told], r"callbacks: Told is a class\. Pass an object of it"),
    ],
)
def test_what_is_no_callback_is_refused(parts, callbacks, text):
    with pytest.raises(TypeError, match=text):
        fp.train.full(parts, **QUICK, callbacks=callbacks)


READ = """
import sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1]).Reload()
print(*(event.value for event in events.Scalars("loss")))
print(*(event.step for event in events.Scalars("val_f1")))
print(events.Scalars("summary/test_f1")[0].value)
"""


@pytest.mark.filterwarnings("ignore")
def test_tensorboard(parts, tmp_path):
    pytest.importorskip("tensorboard")
    trained = fp.train.full(parts, **QUICK, callbacks=[TensorBoard(tmp_path / "runs")])
    read = [sys.executable, "-W", "ignore", "-c", READ, str(tmp_path / "runs")]
    printed = subprocess.run(read, check=True, capture_output=True, text=True).stdout
    losses, steps, score = printed.splitlines()[-3:]
    assert [float(loss) for loss in losses.split()] == pytest.approx(trained.history["loss"].to_list())
    assert steps == "1 2"
    assert float(score) == pytest.approx(trained.summary["test_f1"])


class Calls:
    """A module that notes the calls of its functions."""

    def __init__(self):
        self.made = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)

        def call(*given, **named):
            self.made.append((name, *given, *named.items()))
            return self

        call.update = lambda values: self.made.append((f"{name}.update", values))
        return call


def test_wandb(parts, monkeypatch):
    calls = Calls()
    monkeypatch.setitem(sys.modules, "wandb", calls)
    trained = fp.train.full(parts, **QUICK, callbacks=[WandB(project="p", mode="offline")])
    assert calls.made[0] == ("init", ("project", "p"), ("mode", "offline"))
    logged = [each for each in calls.made if each[0] == "log"]
    assert [each[2] for each in logged] == [("step", 0), ("step", 1), ("step", 2)]
    assert [each[1]["loss"] for each in logged] == trained.history["loss"].to_list()
    assert "val_f1" not in logged[0][1]
    config, summary = (dict(each[1:] and each[1]) for each in calls.made if each[0].endswith("update"))
    assert (config["hidden"], summary["test_f1"]) == (8, trained.summary["test_f1"])
    assert calls.made[-1] == ("finish",)


def test_mlflow(parts, monkeypatch):
    calls = Calls()
    monkeypatch.setitem(sys.modules, "mlflow", calls)
    trained = fp.train.full(parts, **QUICK, callbacks=[MLflow(run_name="r")])
    names = [each[0] for each in calls.made]
    assert names == ["start_run", *["log_metrics"] * 3, "log_params", "log_metrics", "end_run"]
    assert calls.made[-2][1]["summary.test_f1"] == trained.summary["test_f1"]


@pytest.mark.parametrize(("logger", "name"), [(WandB, "wandb"), (MLflow, "mlflow")])
def test_a_library_that_is_not_installed_is_named(monkeypatch, logger, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ModuleNotFoundError, match=f"{name} is not installed, .*: pip install {name}"):
        logger()


def test_loggers_of_the_shell(parts, tmp_path, monkeypatch, capsys):
    """Several at once. What cannot log is refused before anything is trained or written."""
    pytest.importorskip("tensorboard")
    monkeypatch.chdir(tmp_path)
    words = ["train", "full", str(parts), "--epochs", "2", "--hidden", "8", "--threads", "1", "--json"]
    wandb, mlflow = Calls(), Calls()
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    assert main([*words, "--log", "jsonl=m.jsonl,tensorboard=events,wandb=p,mlflow=http://host:5000"]) == 0
    assert len((tmp_path / "m.jsonl").read_text().splitlines()) == 2
    assert list((tmp_path / "events").iterdir())
    assert wandb.made[0] == ("init", ("project", "p"))
    assert mlflow.made[:2] == [("set_tracking_uri", "http://host:5000"), ("start_run",)]
    monkeypatch.setitem(sys.modules, "wandb", None)
    capsys.readouterr()
    for log, error in (
        ("jsonl=n.jsonl,wandb=p", "wandb is not installed, which this logger writes with: pip install wandb"),
        ("jsonl=n.jsonl,tensorbord=e", "--log: unknown value 'tensorbord'. "),
    ):
        assert main([*words, "--log", log, "-o", "run"]) > 0
        assert error in capsys.readouterr().err
        assert not {"run", "n.jsonl"} & {each.name for each in tmp_path.iterdir()}


def test_json_lines_can_be_read_while_training_and_after_a_resume(parts, tmp_path):
    file, seen = tmp_path / "metrics.jsonl", []

    def epochs():
        return [json.loads(line)["epoch"] for line in file.read_text().splitlines()]

    def look(row):
        seen.append((row["epoch"], epochs()))

    logger = types.SimpleNamespace(on_epoch=look)  # after the one that writes
    fp.train.full(parts, **QUICK, out=tmp_path / "run", callbacks=[JsonLines(file), logger])
    assert seen == [(0, [0]), (1, [0, 1]), (2, [0, 1, 2])]
    assert (
        json.loads(file.read_text().splitlines()[0])["val_accuracy"] is None
    )  # scores come after two epochs
    with file.open("a") as end:
        end.write('{"epoch": 3}\n{"epoch": 4, "lo')  # a training that was killed had come further
    fp.train.open(tmp_path / "run").resume(epochs=5, callbacks=[JsonLines(file)])
    assert epochs() == [0, 1, 2, 3, 4]
    assert json.loads(file.read_text().splitlines()[3])["loss"] > 0
    fp.train.full(parts, **QUICK, callbacks=[JsonLines(file)])
    assert epochs() == [0, 1, 2]


@pytest.mark.parametrize("content", ["notes\n", '{"epoch": 0}\n[]\n{"epoch": 1}\n', '{"loss": 1}\n'])
def test_json_lines_replace_nothing_else(tmp_path, content):
    file = tmp_path / "notes.jsonl"
    file.write_text(content)
    with pytest.raises(
        fp.errors.ParameterError, match=r"log: line \d of .*notes.jsonl is no epoch. Name another file"
    ):
        JsonLines(file)
    assert file.read_text() == content


def test_json_has_no_nan(tmp_path):
    JsonLines(tmp_path / "m.jsonl").on_epoch({"epoch": 0, "loss": float("nan"), "best": float("inf")})
    assert json.loads((tmp_path / "m.jsonl").read_text()) == {"epoch": 0, "loss": None, "best": None}
