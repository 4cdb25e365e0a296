"""Batch workers and compute workers as processes: the losses of ``sampled``, whatever their numbers and the cache."""

import json
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from ranks import of_torchrun, run_ranks
from soaked import some_of
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.methods.armada import driver  # noqa: E402

QUICK = {"hidden": 8, "threads": 1, "epochs": 3, "batch_size": 100, "fanouts": [4, 3]}

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=3)


@pytest.fixture(scope="module")
def sampled(parts):
    return fp.train.sampled(parts, workers=1, **QUICK)


def assert_same(one, other, tolerance=1e-5):
    for name in ("loss", "val_f1"):
        np.testing.assert_allclose(one.history[name], other.history[name], rtol=tolerance, atol=tolerance)
    for name, weight in one.weights.items():
        torch.testing.assert_close(weight, other.weights[name], rtol=10 * tolerance, atol=10 * tolerance)


WAYS = [
    (1, 1, {}),
    (2, 2, {"cache": 0.2}),
    (3, 1, {"cache": 0.1, "policy": "lru", "ahead": 1}),
    (1, 3, {"cache": "1G", "policy": "lru"}),
]


@pytest.mark.parametrize(
    ("batch_workers", "compute_workers", "given"),
    some_of(WAYS, always=WAYS[1:3]),
)
def test_losses_are_those_of_sampled(parts, sampled, batch_workers, compute_workers, given):
    found = fp.train.armada(
        parts, batch_workers=batch_workers, compute_workers=compute_workers, **given, **QUICK
    )
    assert_same(found, sampled)
    sizes = {"parts": 3, "batch_workers": batch_workers, "compute_workers": compute_workers}
    assert sizes.items() <= found.summary.items()


@pytest.mark.parametrize(
    ("model", "sampling"), some_of([("gat", "uniform"), ("gcn", "labor")], always=[("gcn", "labor")])
)
def test_models_with_dropout_and_degrees(parts, model, sampling):
    given = {**QUICK, "model": model, "sampling": sampling, "epochs": 2, "dropout": 0.3}
    found = fp.train.armada(parts, batch_workers=2, compute_workers=2, **given)
    assert_same(found, fp.train.sampled(parts, workers=1, **given))


def test_more_workers_than_parts_or_seeds(tmp_path):
    parts = planted(tmp_path, k=2, n=60, m=200)
    given = {**QUICK, "batch_size": 2, "epochs": 1}
    found = fp.train.armada(parts, batch_workers=3, compute_workers=3, **given)
    assert_same(found, fp.train.sampled(parts, workers=1, **given))


def test_what_a_training_counts(parts):
    plain, cached = (
        fp.train.armada(parts, batch_workers=2, compute_workers=2, cache=cache, **QUICK).history
        for cache in (0, "1G")
    )
    for rows in (plain, cached):
        assert (rows["remote_bytes"] > rows["remote_rows"] * 8 * 4).all()  # 8 features of float32
        assert (rows["ungrouped_bytes"] > rows["remote_bytes"]).all()
        assert (rows["worker_bytes"] > 0).all()
        assert (rows["batch_worker_bytes"] > 0).all()
        for name in ("sampling", "fetching", "compute", "synchronising", "idle"):
            assert (rows[f"{name}_seconds"] > 0).all()
            assert (rows[f"{name}_seconds"] <= rows["seconds"] * 1.5).all()
    assert (plain["cached_rows"] == 0).all()
    assert (plain["fetched_rows"] > 0).all()
    needed = cached["remote_rows"] + cached["cached_rows"]
    assert needed.to_list() == plain["remote_rows"].to_list()
    assert cached["remote_rows"].sum() <= 2 * 600  # each batch worker sends a row once
    alone = fp.train.armada(parts, **QUICK).history
    assert (alone["fetched_rows"] == 0).all()


def test_parts_in_turn_learn(parts):
    given = {"hidden": 16, "threads": 1, "epochs": 8, "batch_size": 100, "fanouts": [5, 5], "order": "parts"}
    given["lr"] = 0.03
    one = fp.train.armada(parts, batch_workers=2, hold=1, **given)
    other = fp.train.armada(parts, batch_workers=2, hold=1, compute_workers=2, cache=0.3, **given)
    assert_same(one, other)
    assert one.summary["test_accuracy"] > 0.85
    assert (one.history["fetched_rows"] == 0).all()


@pytest.mark.parametrize("order", ["global", "parts"])
def test_resumed_training_is_as_if_never_stopped(parts, tmp_path, order):
    given = {**QUICK, "epochs": 4, "batch_workers": 2, "order": order}
    whole = fp.train.armada(parts, **given)
    fp.train.armada(parts, out=tmp_path / "out", **{**given, "epochs": 2})
    resumed = fp.train.armada(parts, out=tmp_path / "out", resume=True, **given)
    assert resumed.history["loss"].to_list() == whole.history["loss"].to_list()
    assert all(torch.equal(weight, whole.weights[name]) for name, weight in resumed.weights.items())


def test_other_workers_may_resume_the_global_order_only(parts, tmp_path):
    given = {**QUICK, "epochs": 2}
    for order in ("global", "parts"):
        out = tmp_path / order
        fp.train.armada(parts, out=out, order=order, **{**given, "epochs": 1})
        text = "was trained with batch_workers = "
        if order == "parts":
            with pytest.raises(fp.errors.ParameterError, match=text):
                fp.train.armada(
                    parts, out=out, order=order, resume=True, batch_workers=2, **{**given, "epochs": 1}
                )
        else:
            fp.train.armada(
                parts, out=out, order=order, resume=True, batch_workers=2, **{**given, "epochs": 1}
            )


def test_a_model_of_a_user_gets_features_of_edges(tmp_path, mine):
    model = mine(
        "import torch\nclass Mine(torch.nn.Module):\n"
        "    def __init__(self, task, options):\n        super().__init__()\n"
        "        self.linear = torch.nn.Linear(task.features, task.classes)\n"
        "    def forward(self, x, edge_index, edge_attr):\n"
        "        assert (edge_attr == 7).all() and edge_attr.shape == (edge_index.shape[1], 2)\n"
        "        return self.linear(x)\n"
    )
    parts = planted(tmp_path, k=2, edge_features=np.full((4000, 2), 7, np.float16))
    assert fp.train.armada(parts, model=model, **{**QUICK, "epochs": 1}).history["loss"][0] > 0


def test_parts_that_do_not_fit_are_refused(parts, monkeypatch):
    monkeypatch.setattr(driver, "_core", SimpleNamespace(memory_budget=lambda: 100_000))
    with pytest.raises(fp.errors.MemoryBudgetError, match="hold: 2 parts need up to"):
        fp.train.armada(parts, order="parts", hold=2, **QUICK)


def test_the_command_line(parts, sampled, capsys):
    words = ["--hidden", "8", "--threads", "1", "--epochs", "3", "--batch-size", "100", "--fanouts", "4,3"]
    words += ["--batch-workers", "2", "--compute-workers", "2", "--cache", "0.1", "--policy", "lru", "--json"]
    assert main(["train", "armada", str(parts), *words]) == 0
    found = [row["loss"] for row in json.loads(capsys.readouterr().out)["history"]]
    np.testing.assert_allclose(found, sampled.history["loss"], rtol=1e-5)


WORDS = ["--hidden", "8", "--epochs", "3", "--batch-size", "100", "--fanouts", "4,3", "--batch-workers", "2"]


def of_srun(rank):
    return {"SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": "2", "SLURM_PROCID": f"{rank}"}


@pytest.mark.parametrize(
    "variables",
    [pytest.param(of_torchrun, marks=pytest.mark.soak), partial(of_torchrun, machines=2), of_srun],
    ids=["torchrun", "two machines", "srun"],
)
def test_ranks_of_a_launcher(parts, sampled, tmp_path, variables):
    """Each machine has a receiver and a batch worker, which makes batches for all."""
    words = ("train", "armada", parts, *WORDS, "--cache", "0.1", "-o", tmp_path / "out", "--json", "-q")
    first, second = run_ranks("fastpart", *words, variables=variables)
    assert (first.code, second.code, second.out) == (0, 0, ""), first.errors + second.errors
    found = [row["loss"] for row in json.loads(first.out)["history"]]
    np.testing.assert_allclose(found, sampled.history["loss"], rtol=1e-5)
