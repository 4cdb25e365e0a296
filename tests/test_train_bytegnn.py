"""Training on scheduled batches: the losses of ``sampled``, and a trace of all workers."""

import json

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from trainable import planted
from typed_training import typed_parts

torch = pytest.importorskip("torch")

QUICK = {"hidden": 8, "threads": 2, "epochs": 3, "batch_size": 60, "fanouts": [4, 3]}

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(180)]

SECONDS = ("sampling", "fetching", "compute", "synchronising", "idle")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=3)


@pytest.mark.parametrize(
    "given", [{}, {"model": "gat", "heads": 2, "sampling": "labor"}, {"cache": 0.2, "ahead": 0}]
)
def test_losses_are_those_of_sampled(parts, given):
    given = {**QUICK, **given}
    expected = fp.train.sampled(parts, workers=2, **given)
    for workers in (1, 2):
        found = fp.train.bytegnn(parts, workers=workers, **given)
        assert found.history["loss"].to_list() == pytest.approx(expected.history["loss"].to_list(), rel=1e-5)
    assert found.history.columns == expected.history.columns
    assert found.history["remote_rows"].sum() > 0
    for name, weight in found.weights.items():
        torch.testing.assert_close(weight, expected.weights[name], rtol=1e-4, atol=1e-5)
    assert found.method == "bytegnn"


OVER_TYPES = {"precision": "float64", "lr": 0.02, **QUICK, "batch_size": 20}


@pytest.mark.parametrize(("k", "workers"), [(1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize(
    ("widths", "given"),
    [
        (None, {"model": "hgt", "cache": 0.2, "ahead": 0}),
        (None, {"model": "rgat", "fanouts": {"cites": [4, 3], "writes": [2, 2]}, "sampling": "labor"}),
        ({"field": 2}, {"model": "rgcn"}),
        ({"paper": 5}, {"model": "heterosage", "scores": "sampled"}),
    ],
)
def test_losses_over_types_are_those_of_sampled_to_the_bit(tmp_path, k, workers, widths, given):
    """Types without a width have rows that are learned."""
    typed_parts(tmp_path, k, widths=widths)
    given = {**OVER_TYPES, "workers": workers, **given}
    expected = fp.train.sampled(tmp_path / "parts", **given)
    trace = tmp_path / "trace.json"
    found = fp.train.bytegnn(tmp_path / "parts", trace=trace, **given)
    assert found.history.columns == expected.history.columns
    for name in ("loss", "val_accuracy", "rows", "local_rows"):
        assert found.history[name].to_list() == expected.history[name].to_list()
    assert found.summary["test_accuracy"] == expected.summary["test_accuracy"]
    for name, weight in found.weights.items():
        assert torch.equal(weight, expected.weights[name])
    learned = found.learned or {}
    assert set(learned) == (set() if widths is None else {"author", "field", "paper"} - set(widths))
    for name, rows in learned.items():
        assert np.array_equal(rows, expected.learned[name])
    spans = [event for event in json.loads(trace.read_text())["traceEvents"] if event["ph"] == "X"]
    steps = QUICK["epochs"] * 3  # of 60 papers
    for worker in range(workers):
        assert sum(span["pid"] == worker and span["name"] == "neighbourhood" for span in spans) == steps
    assert {"seed", "features", "compute"} <= {span["name"] for span in spans}


def test_resumed_over_types_with_learned_rows(tmp_path):
    typed_parts(tmp_path, 2, widths={"field": 2})
    given = {**OVER_TYPES, "model": "rgcn", "workers": 2}
    whole = fp.train.bytegnn(tmp_path / "parts", **given)
    fp.train.bytegnn(tmp_path / "parts", out=tmp_path / "out", **{**given, "epochs": 2})
    resumed = fp.train.bytegnn(tmp_path / "parts", out=tmp_path / "out", resume=True, **given)
    assert resumed.history["loss"].to_list() == whole.history["loss"].to_list()
    classes = fp.train.open(tmp_path / "out").predict(tmp_path / "parts")
    assert np.array_equal(classes, whole.predict(tmp_path / "parts"))


def test_a_trace_of_all_workers(parts, tmp_path):
    trained = fp.train.bytegnn(parts, workers=2, trace=tmp_path / "trace.json", **QUICK)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    assert {span["pid"] for span in spans} == {0, 1}
    steps = QUICK["epochs"] * 5
    for name in ("seed", "neighbourhood"):
        assert sum(span["name"] == name for span in spans) == 2 * steps
    # "wait" is there only if a batch came too late.
    assert {"features", "compute", "synchronising", "idle"} <= {span["name"] for span in spans}
    for name in ("compute", "synchronising"):
        seconds = sum(span["dur"] for span in spans if span["name"] == name) / 1e6 / 2
        assert trained.history[f"{name}_seconds"].sum() == pytest.approx(seconds, rel=0.1)
    assert list(tmp_path.iterdir()) == [tmp_path / "trace.json"]


@pytest.mark.parametrize("method", ["sampled", "bytegnn"])
def test_the_time_of_an_epoch_is_told(parts, capsys, method):
    given = ["--hidden", "8", "--epochs", "3", "--fanouts", "4,3", "--threads", "2", "--workers", "2"]
    assert main(["train", method, str(parts), *given, "--json"]) == 0
    for row in json.loads(capsys.readouterr().out)["history"]:
        assert all(row[f"{name}_seconds"] > 0 for name in SECONDS)
        spent = sum(row[f"{name}_seconds"] for name in SECONDS[2:])
        assert 0 < spent <= row["seconds"] * 1.2


def test_resumed(parts, tmp_path):
    whole = fp.train.bytegnn(parts, workers=2, **QUICK)
    fp.train.bytegnn(parts, workers=2, out=tmp_path / "out", **{**QUICK, "epochs": 2})
    resumed = fp.train.bytegnn(parts, workers=2, out=tmp_path / "out", resume=True, **QUICK)
    assert resumed.history["loss"].to_list() == whole.history["loss"].to_list()


def test_refusals(parts, tmp_path):
    with pytest.raises(fp.errors.ParameterError, match=r"^trace: .*t\.txt is no .json file"):
        fp.train.bytegnn(parts, trace=tmp_path / "t.txt")
    with pytest.raises(
        fp.errors.ParameterError, match=r"^model: clustergcn trains on sampled graphs.*Train it with sampled"
    ):
        fp.train.bytegnn(parts, model="clustergcn")


def test_what_is_refused_over_types(tmp_path):
    typed_parts(tmp_path)
    for given, text in (
        ({"model": "graphsage"}, r"^model: the graph has types"),
        ({"model": "clustergcn"}, r"^model: "),
    ):
        with pytest.raises(fp.errors.ParameterError, match=text):
            fp.train.bytegnn(tmp_path / "parts", **{"model": "rgcn", **given})
