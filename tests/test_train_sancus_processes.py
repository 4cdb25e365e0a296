"""SANCUS in processes of their own: against training without parts, with stale copies, resumed, and as a command."""

import json

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from trainable import planted

pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(("model", "rows"), [("graphsage", "all"), ("gcn", "boundary")])
def test_losses_are_those_of_full(tmp_path, model, rows):
    path = planted(tmp_path, k=3)
    given = {"model": model, "epochs": 10, "dropout": 0.5, "threads": 1, "seed": 3}
    found, expected = fp.train.sancus(path, rows=rows, **given), fp.train.full(path, **given)
    np.testing.assert_allclose(found.history["loss"], expected.history["loss"], rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.history["val_f1"], expected.history["val_f1"], atol=0.02)
    assert found.summary["parts"] == 3
    assert found.history["broadcasts"].to_list() == [3] * 10
    workers = found.summary["per_worker"]
    assert sum(worker["vertices"] for worker in workers) == 600
    assert sum(worker["edges"] for worker in workers) == 2 * 4000
    # Features are sent once.
    first, *later = found.history["remote_bytes"]
    assert first > later[0] == min(later) == max(later)


@pytest.mark.parametrize(("bound", "eps"), [("period", 3), ("max_age", 2), ("max_change", 0.1)])
def test_skipped_broadcasts_save_bytes_and_keep_accuracy(tmp_path, bound, eps):
    path = planted(tmp_path, k=2)
    trained = fp.train.sancus(path, epochs=15, dropout=0.0, threads=1, **{bound: eps})
    assert trained.summary["test_accuracy"] > 0.8
    rows = trained.history
    assert rows["broadcasts"][0] == 2
    assert (rows["broadcasts"] + rows["skipped"] == 2).all()
    assert rows["skipped"].sum() > 0
    # A broadcast and its gradients take the same in each epoch, of parts of about the same size, and nothing else.
    later = rows[1:]
    assert (later.filter(later["broadcasts"] == 0)["remote_bytes"] == 0).all()
    each = (later["remote_bytes"] / later["broadcasts"]).drop_nans()
    assert each.max() < 1.1 * each.min()


def test_resume_goes_on_where_it_was(tmp_path):
    path = planted(tmp_path, k=2)
    given = {"threads": 1, "out": tmp_path / "run", "rows": "boundary"}
    whole = fp.train.sancus(path, epochs=6, threads=1, rows="boundary")
    stopped = 3

    def stop(_, done, __):
        if done == stopped:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fp.train.sancus(path, epochs=6, progress=stop, **given)
    resumed = fp.train.sancus(path, epochs=6, resume=True, **given)
    np.testing.assert_allclose(resumed.history["loss"], whole.history["loss"], rtol=0, atol=1e-5)
    with pytest.raises(fp.errors.ParameterError, match="resume"):
        fp.train.sancus(path, epochs=6, resume=True, period=2, **given)


def test_attention_is_refused(tmp_path):
    with pytest.raises(fp.errors.ParameterError, match="multiply by a constant matrix"):
        fp.train.sancus(planted(tmp_path, k=2), model="gat")


@pytest.mark.parametrize("rows", ["all", "boundary"])
def test_parts_may_be_empty_or_have_nothing_to_train_on(tmp_path, rows):
    test = np.random.default_rng(0).permutation(600)[450:]
    parts = np.zeros(600, int)
    parts[test] = 2
    path = planted(tmp_path, k=3, assignment=parts)
    trained = fp.train.sancus(path, rows=rows, max_age=1, epochs=8, threads=1)
    assert [worker["vertices"] for worker in trained.summary["per_worker"]] == [450, 0, 150]
    assert (trained.history["broadcasts"] + trained.history["skipped"] == 2).all()
    assert trained.summary["test_accuracy"] > 0.6


def test_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    planted(tmp_path, k=2)
    given = ["train", "sancus", "parts", "--epochs", "3", "--threads", "1", "-o", "run", "--json"]
    own = ["--max-change", "2", "--rows", "boundary", "--dropout", "0.1"]
    assert main([*given, *own]) == 0
    content = json.loads(capsys.readouterr().out)
    assert [row["skipped"] for row in content["history"]] == [0, 2, 2]
    assert main([*given, *own, "--resume"]) == 0
    assert json.loads(capsys.readouterr().out)["history"] == content["history"]
    assert main([*given, "--period", "2", "--max-age", "1"]) == 2
    assert "--max-age, --period: only one bound" in capsys.readouterr().err
