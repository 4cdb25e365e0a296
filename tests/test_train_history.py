"""Checkpoints, the best epoch and the end of training."""

import io
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.models import GraphSAGE  # noqa: E402
from fastpart.train.options import Options  # noqa: E402
from fastpart.train.runs.history import History  # noqa: E402
from fastpart.train.runs.run_folder import RunFolder, load_weights  # noqa: E402

QUICK = {"hidden": 8, "threads": 1, "epochs": 6}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=2)


def equal(one, other):
    """Compare what checkpoints consist of, bit for bit."""
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    return one == other


def timeless(metrics):
    return metrics.drop("seconds", "worker_bytes")


class Stop(Exception):
    pass


def stop_after(epochs):
    def progress(phase, done, total):
        if phase == "epoch" and done == epochs:
            raise Stop

    return progress


class Interrupted(GraphSAGE):
    """Ctrl-C comes amid the steps of an epoch."""

    steps = None

    def forward(self, graphs, x):
        if self.training and Interrupted.steps is not None:
            Interrupted.steps -= 1
            if not Interrupted.steps:
                raise KeyboardInterrupt
        return super().forward(graphs, x)


def check_resumed(parts, tmp_path, interrupt, **given):
    """Compare an interrupted training, resumed, with one at a stretch."""
    at_once = fp.train.full(parts, out=tmp_path / "once", **given)
    interrupt(tmp_path / "twice")
    checkpoint = load_weights(tmp_path / "twice" / "checkpoint.pt")
    assert '"epoch": 2' in checkpoint["rows"]
    assert '"epoch": 3' not in checkpoint["rows"]
    resumed = fp.train.full(parts, out=tmp_path / "twice", resume=True, **given)
    assert timeless(resumed.history).equals(timeless(at_once.history))
    assert equal(resumed.weights, at_once.weights)
    states = [load_weights(tmp_path / name / "checkpoint.pt")["state"] for name in ("once", "twice")]
    assert equal(*states)
    assert resumed.summary["test_f1"] == at_once.summary["test_f1"]


@pytest.mark.parametrize(
    ("model", "size"),
    [("graphsage", None), ("graphsage", 64), ("gat", 64), ("clustergcn", 64), ("graphsaint", 64)],
)
def test_resumed_training_is_as_if_never_stopped(parts, tmp_path, model, size):
    given = {"model": model, "batch_size": size, **QUICK}

    def interrupt(output):
        with pytest.raises(Stop):
            fp.train.full(parts, out=output, progress=stop_after(3), **given)

    check_resumed(parts, tmp_path, interrupt, **given)


def test_an_interrupt_amid_an_epoch_goes_on_from_the_last_checkpoint(parts, tmp_path, monkeypatch):
    monkeypatch.setattr("fastpart.train.runs.history.SAVE_SECONDS", -1.0)
    given = {"model": Interrupted, "batch_size": 100, **QUICK}

    def interrupt(output):
        Interrupted.steps = 3 * 3 + 2  # of 300 training vertices
        with pytest.raises(KeyboardInterrupt):
            fp.train.full(parts, out=output, **given)
        assert Interrupted.steps == 0
        Interrupted.steps = None

    check_resumed(parts, tmp_path, interrupt, **given)


def test_what_is_over_is_not_trained_again(parts, tmp_path):
    first = fp.train.full(parts, out=tmp_path / "out", **QUICK)
    again = fp.train.full(parts, out=tmp_path / "out", resume=True, progress=stop_after(6), **QUICK)
    assert again.history.equals(first.history)
    assert equal(again.weights, first.weights)
    anew = fp.train.full(parts, out=tmp_path / "out", overwrite=True, **QUICK)
    assert not anew.history.equals(first.history)  # but in seconds, they are


def test_resume_without_a_checkpoint_begins(parts, tmp_path):
    assert fp.train.full(parts, out=tmp_path / "out", resume=True, **QUICK).summary["epochs"] == 6


@pytest.mark.parametrize("other", [{"hidden": 9}, {"seed": 1}, {"model": "gcn"}, {"batch_size": 9}])
def test_other_options_are_not_resumed(parts, tmp_path, other):
    fp.train.full(parts, out=tmp_path / "out", **QUICK)
    with pytest.raises(
        fp.errors.ParameterError, match=rf"resume: .*out was trained with {next(iter(other))} = "
    ):
        fp.train.full(parts, out=tmp_path / "out", resume=True, **{**QUICK, **other})


def test_other_graphs_are_not_resumed(parts, tmp_path):
    fp.train.full(parts, out=tmp_path / "out", **QUICK)
    other = planted(tmp_path, m=3999)
    with pytest.raises(fp.errors.ParameterError, match=r"resume: .*out was trained on other graph"):
        fp.train.full(other, out=tmp_path / "out", resume=True, **QUICK)


def test_outputs_that_are_refused(parts, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(fp.errors.ParameterError, match=r"out: .*file is not a directory"):
        fp.train.full(parts, out=tmp_path / "file", **QUICK)
    with pytest.raises(FileNotFoundError, match="absent"):
        fp.train.full(parts, out=tmp_path / "absent" / "out", **QUICK)


# Hostile checkpoints.


class Malicious:
    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def saved(content):
    buffer = io.BytesIO()
    torch.save(content, buffer)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "kind", ["pickle", "torch", "cut", "garbage", "empty", "list", "other", "rows", "state"]
)
def test_damaged_and_malicious_checkpoints_are_refused(parts, tmp_path, kind):
    fp.train.full(parts, out=tmp_path / "out", **QUICK)
    file = tmp_path / "out" / "checkpoint.pt"
    content, whole, trap = load_weights(file), file.read_bytes(), tmp_path / "executed"
    file.write_bytes(
        {
            "pickle": lambda: pickle.dumps(Malicious(trap)),
            "torch": lambda: saved({"best": Malicious(trap)}),
            "cut": lambda: whole[: len(whole) // 2],
            "garbage": lambda: b"\x00garbage" * 99,
            "empty": lambda: b"",
            "list": lambda: saved([1, 2]),
            "other": lambda: saved({"weights": torch.ones(2)}),
            "rows": lambda: saved({**content, "rows": "{["}),
            "state": lambda: saved({**content, "state": {"network": {"a": torch.ones(2)}}}),
        }[kind]()
    )
    folder = RunFolder(tmp_path / "out")  # somebody who writes such a file can also write its checksum
    folder.write({"checkpoint.pt": file.read_bytes()})
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"checkpoint\.pt: (holds no weights|not a checkpoint of fastpart)"
    ):
        fp.train.full(parts, out=tmp_path / "out", resume=True, **QUICK)
    assert not trap.exists()


# The best epoch, and the end.


def scored(scores, patience=None, epochs=100):
    """Return the history of these validation scores, whose weights are the number of the epoch."""
    history = History("full", Options(patience=patience, epochs=epochs), RunFolder(Path("none")), False)
    for epoch, value in enumerate(scores):
        if history.over:
            break
        history.add({"val_f1": value, "loss": 1.0}, lambda epoch=epoch: {"w": torch.tensor(epoch)})
    return history


@given(
    st.lists(st.sampled_from([0.1, 0.2, 0.3, 0.4]), min_size=1, max_size=12), st.none() | st.integers(1, 4)
)
def test_the_first_of_the_best_epochs_is_kept(scores, patience):
    history = scored(scores, patience)
    seen = scores[: len(history.rows)]
    assert history.best_epoch == seen.index(max(seen))
    assert history.best["w"] == history.best_epoch
    stale = [i for i in range(len(scores)) if patience and i - scores.index(max(scores[: i + 1])) >= patience]
    assert len(seen) == (stale[0] + 1 if stale else len(scores))


def test_epochs_without_a_score_are_each_the_best():
    assert scored([float("nan")] * 3).best_epoch == 2


def test_scores_that_are_nan_do_not_prolong_a_training():
    assert len(scored([np.nan] * 9, patience=3).rows) == 3
    assert len(scored([0.5, *[np.nan] * 9], patience=3).rows) == 4


def test_an_epoch_whose_loss_is_not_finite_is_the_best_only_if_all_are():
    def best_of(*losses):
        history = History("full", Options(), RunFolder(Path("none")), False)
        for loss, score in losses:
            history.add({"loss": loss, "val_f1": score}, dict)
        return history.best_epoch

    assert best_of((np.nan, None), (np.inf, 0.9), (1.0, 0.1), (np.nan, 0.9)) == 2
    assert best_of((1.0, None), (1.0, None), (np.nan, None)) == 1
    assert best_of((np.nan, np.nan), (1.0, np.nan), (np.nan, np.nan)) == 1
    assert best_of((np.nan, np.nan), (np.nan, np.nan)) == 1


def test_patience_ends_training(parts):
    trained = fp.train.full(parts, **{**QUICK, "epochs": 50}, lr=1e-12, patience=3, dropout=0)
    assert trained.summary["epochs"] == 4
    assert trained.summary["best_epoch"] == 0


def test_weights_of_the_best_epoch_are_returned(parts, tmp_path):
    trained = fp.train.full(parts, out=tmp_path / "out", **{**QUICK, "epochs": 30}, lr=0.5)
    scores = trained.history["val_f1"].to_list()
    assert trained.summary["best_epoch"] == int(np.argmax(scores)) < 29
    assert trained.summary["val_f1"] == max(scores)
    last = load_weights(tmp_path / "out" / "checkpoint.pt")["state"]["network"]
    assert not equal(last, trained.weights)


def test_an_epoch_without_a_score_is_the_best_only_if_no_epoch_has_one():
    history, scores = (
        History("links", Options(patience=3), RunFolder(Path("none")), False),
        [np.nan, np.nan, 0.5, np.nan, 0.4, np.nan],
    )
    best = []
    for score in scores:
        history.add({"val_mrr": score, "loss": 1.0}, dict)
        best.append(history.best_epoch)
    assert best == [0, 1, 2, 2, 2, 2]
    assert history.over
