"""Training with a plan: the losses are those without it, and nothing is left of what was packed beyond it."""

import json
import re

import pytest

import fastpart as fp
from fastpart.cli import main
from fastpart.core.parsing import with_checksum
from fastpart.measures import reading
from trainable import planted
from typed_training import typed_parts

torch = pytest.importorskip("torch")

BATCHES = {"batch_size": 100, "fanouts": [4, 3]}
QUICK = {**BATCHES, "hidden": 8, "threads": 1, "epochs": 5}

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(180)]


@pytest.fixture(autouse=True)
def a_moment_for_the_disk(monkeypatch):
    monkeypatch.setattr(reading, "SECONDS", 0.01)


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=3)


@pytest.fixture(scope="module")
def losses(parts):
    return fp.train.sampled(parts, workers=1, **QUICK).history["loss"].to_list()


def packed(parts, folder, workers=2, **given):
    return fp.open_partition(parts).plan(2, **{**BATCHES, **given}, workers=workers, pack=folder / "plan")


@pytest.mark.parametrize("method", [fp.train.sampled, fp.train.bytegnn])
@pytest.mark.parametrize("given", [{}, {"memory": "8K"}])
def test_losses_are_those_without_a_plan(parts, losses, tmp_path, method, given):
    plan = packed(parts, tmp_path, **given)
    trained = method(parts, plan=plan, **QUICK)  # with the workers of the plan
    assert trained.history["loss"].to_list() == pytest.approx(losses, rel=1e-5)
    assert [each.name for each in tmp_path.iterdir()] == ["plan"]


@pytest.mark.parametrize("method", [fp.train.sampled, fp.train.bytegnn])
def test_losses_over_types_are_those_without_a_plan(tmp_path, method):
    stored, *_ = typed_parts(tmp_path, 3, widths={"field": 2, "paper": 5})  # rows of authors are learned
    batches = {"batch_size": 20, "fanouts": {"cites": [4, 3], "rev_writes": [3, 2], "rev_has_topic": [3, 2]}}
    how = {**batches, "model": "rgcn", "hidden": 8, "epochs": 3, "precision": "float64", "workers": 2}
    plan = stored.plan(2, **batches, workers=2, memory=200, pack=tmp_path / "plan")
    runs = [method(tmp_path / "parts", **how, **more) for more in ({}, {"plan": plan})]
    assert runs[1].history["loss"].to_list() == runs[0].history["loss"].to_list()
    assert runs[1].history["rows"][:2].sum() == plan.workers["rows"].sum()
    assert not list(tmp_path.glob(".plan.*"))


def test_a_resumed_training_goes_on_with_the_plan(parts, losses, tmp_path):
    plan = packed(parts, tmp_path, workers=1)
    fp.train.sampled(parts, workers=1, plan=plan, out=tmp_path / "run", **QUICK | {"epochs": 1})
    resumed = fp.train.open(tmp_path / "run").resume(epochs=5)
    assert resumed.history["loss"].to_list() == pytest.approx(losses, rel=1e-5)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"batch_size": 99}, "was made for batch_size=100, not 99. Pass what it was made for"),
        ({"workers": 1}, "workers=2, not 1"),
        ({"seed": 1, "sampling": "labor"}, "seed=0, not 1; sampling='uniform', not 'labor'"),
        ({"resident": "1M"}, "plan: it takes the place of resident="),
        ({"model": "clustergcn"}, "is for models that sample neighbours"),
    ],
)
def test_other_trainings_are_refused_before_workers_start(parts, tmp_path, given, text):
    plan = packed(parts, tmp_path)
    with pytest.raises(fp.errors.ParameterError, match=re.escape(text)):
        fp.train.sampled(parts, plan=plan, **{**QUICK, "workers": 2, **given})


def test_rows_that_the_plan_keeps_are_stated(parts, tmp_path):
    plan = packed(parts, tmp_path, workers=1, memory="8K")
    marker = tmp_path / "plan" / "plan.json"
    text = re.sub(rb'"cached_rows": \d+', b'"cached_rows": %d' % 10**9, marker.read_bytes())
    marker.write_bytes(with_checksum(re.sub(rb',\n "xxh3": .*\n', b"\n", text)))
    with pytest.raises(
        fp.errors.MemoryBudgetError, match=r"rows that the plan caches.*a plan with a smaller memory="
    ):
        fp.train.sampled(parts, workers=1, plan=plan.folder, memory_limit="2G", **QUICK)


def test_the_command_line_plans_and_trains_over_types(tmp_path, capsys):
    typed_parts(tmp_path, 2)
    folder, packed = str(tmp_path / "parts"), str(tmp_path / "packed")
    batches = ["--batch-size", "20", "--fanouts", "cites=4:3,rev_writes=3:2", "--workers", "1"]
    assert main(["plan", folder, "--epochs", "1", *batches, "--input", "paper", "-o", packed]) == 0
    assert "author" in capsys.readouterr().out
    train = ["train", "sampled", folder, "--model", "rgcn", "--epochs", "1", *batches, "--plan", packed]
    assert main(train) == 0
    train[train.index("cites=4:3,rev_writes=3:2")] = "cites=4:3"
    assert main(train) == 2
    assert "was made for --fanouts cites=4:3" in capsys.readouterr().err


def test_the_command_line_plans_and_trains(parts, tmp_path, capsys):
    batches = ["--batch-size", "100", "--fanouts", "4,3", "--workers", "1"]
    plan = ["plan", str(parts), "--epochs", "2", *batches]
    assert main([*plan, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["workers"][0]["rows"] == told["workers"][0]["read_rows"] > 0
    assert main([*plan, "-o", str(tmp_path / "packed")]) == 0
    assert "per epoch" in capsys.readouterr().out
    train = ["train", "sampled", str(parts), "--epochs", "2", "--hidden", "8", "--threads", "1", *batches]
    assert main([*train, "--plan", str(tmp_path / "packed")]) == 0
    assert main([*train, "--plan", str(tmp_path / "packed"), "--seed", "1"]) == 2
    assert "was made for --seed 0, not 1" in capsys.readouterr().err
