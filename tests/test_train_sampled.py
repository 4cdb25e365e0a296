"""Mini-batches over all parts: the same losses for any parts and workers, resumed, and in agreement with full."""

import json
import shutil

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from ranks import run_code, run_ranks
from soaked import some_of
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.models import MODELS, sampling_of  # noqa: E402

QUICK = {"hidden": 8, "threads": 1, "epochs": 3, "batch_size": 100, "fanouts": [4, 3]}

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return planted(tmp_path_factory.mktemp("planted"), k=3)


def assert_same(one, other, tolerance=1e-4):
    """Assert the same training, up to rounding."""
    for name in ("loss", "val_f1"):
        np.testing.assert_allclose(one.history[name], other.history[name], rtol=tolerance, atol=tolerance)
    for name, weight in one.weights.items():
        torch.testing.assert_close(weight, other.weights[name], rtol=tolerance, atol=tolerance)


WAYS = [
    ("graphsage", {}),
    ("gcn", {"sampling": "labor"}),
    ("gat", {"heads": 2}),
    ("gin", {"fanouts": [-1, -1]}),
]


@pytest.mark.parametrize(
    ("model", "given"),
    some_of(WAYS, always=WAYS[1:]),
)
def test_parts_and_workers_do_not_change_the_losses(parts, tmp_path, model, given):
    given = {**QUICK, "model": model, **given}
    one = fp.train.sampled(planted(tmp_path, k=1), **given)
    assert_same(one, fp.train.sampled(parts, workers=3, **given))
    by_hash = planted(tmp_path, k=4, assignment=np.arange(600) * 7 % 4)
    assert_same(one, fp.train.sampled(by_hash, workers=2, **given))


def test_all_neighbours_of_all_vertices_at_once_are_full_batches(parts):
    given = {"hidden": 8, "threads": 1, "epochs": 5, "dropout": 0.0}
    found = fp.train.sampled(parts, workers=2, batch_size=None, fanouts=[-1, -1], **given)
    assert_same(found, fp.train.full(parts, **given))


def test_what_a_training_counts(parts):
    trained = fp.train.sampled(parts, workers=2, **QUICK)
    measured = json.loads((parts / "manifest.json").read_text())["summary"]
    rows = trained.history
    assert (rows["remote_rows"] > 0).all()
    assert (rows["local_rows"] > rows["remote_rows"] * 0).all()
    assert (rows["remote_bytes"] == rows["remote_rows"] * 8 * 4).all()  # 8 features of float32
    for name in (
        "sampling_seconds",
        "fetching_seconds",
        "compute_seconds",
        "synchronising_seconds",
        "idle_seconds",
    ):
        assert (rows[name] > 0).all()
        assert (rows[name] <= rows["seconds"] * 1.5).all()
    share = (1 - rows["compute_seconds"] / rows["seconds"]).median()
    assert trained.summary["idle_share"] == pytest.approx(share)
    assert 0 < share < 1
    summary = {"parts": 3, "workers": 2, "halo_rf": measured["halo_rf"], "label_skew": measured["label_skew"]}
    assert summary.items() <= trained.summary.items()
    alone = fp.train.sampled(parts, workers=1, **QUICK)
    assert (alone.history["remote_rows"] == 0).all()


def test_fanouts_begin_with_the_training_vertices(parts):
    given = {"hidden": 8, "threads": 1, "epochs": 1, "batch_size": None, "workers": 1}
    rows = [
        fp.train.sampled(parts, fanouts=fanouts, **given).history["local_rows"][0]
        for fanouts in ([0, -1], [-1, 0])
    ]
    assert rows[0] == 300 < rows[1]  # without a first hop only the training vertices are read


def test_it_learns_as_full_does(parts):
    given = {"hidden": 16, "threads": 1, "epochs": 15, "batch_size": 100, "fanouts": [5, 5]}
    found, central = fp.train.sampled(parts, **given), fp.train.full(parts, **given)
    assert found.summary["test_accuracy"] == pytest.approx(central.summary["test_accuracy"], abs=0.04)
    assert found.summary["test_accuracy"] > 0.9


SAMPLED = [name for name in MODELS if sampling_of(name) != "neighbour"]


@pytest.mark.parametrize("model", SAMPLED)
def test_models_of_sampled_graphs_learn_and_resume(parts, tmp_path, model):
    given = {"model": model, "hidden": 16, "threads": 1, "epochs": 12, "batch_size": 100, "workers": 2}
    whole = fp.train.sampled(parts, **given)
    assert whole.summary["test_accuracy"] > 0.9
    assert (whole.history["remote_rows"] > 0).all() == (model == "graphsaint")
    assert_goes_on(whole, parts, tmp_path / "out", **given)


def assert_goes_on(whole, parts, out, **given):
    """Assert that a training that ended after half of the epochs goes on as if it had not."""
    fp.train.sampled(parts, out=out, **{**given, "epochs": given["epochs"] // 2})
    resumed = fp.train.sampled(parts, out=out, resume=True, **given)
    assert resumed.history["loss"].to_list() == whole.history["loss"].to_list()
    assert all(torch.equal(weight, whole.weights[name]) for name, weight in resumed.weights.items())


WITH_EDGES = """
import torch
from torch import nn

class Mine(nn.Module):
    def __init__(self, task, options):
        super().__init__()
        self.nodes = nn.Linear(task.features, task.classes)
        self.edges = nn.Linear(2, task.features)

    def forward(self, x, edge_index, edge_attr):
        source, target = edge_index
        messages = torch.relu(x[source] + self.edges(edge_attr))
        sums = torch.zeros_like(x).index_put((target,), messages, accumulate=True)
        return self.nodes(x + sums)
"""


def test_edge_features_reach_models(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(WITH_EDGES)
    given = {**QUICK, "model": f"{file}:Mine", "layers": 1, "fanouts": [4]}
    features = np.random.default_rng(0).standard_normal((4000, 2)).astype(np.float32)
    trained = []
    for k, edge_features in ((1, features), (3, features), (2, features * 2)):
        folder = tmp_path / f"{k}"
        folder.mkdir()
        saved = planted(folder, k=k, edge_features=edge_features)
        trained.append(fp.train.sampled(saved, workers=k, **given))
    assert_same(trained[0], trained[1])
    assert trained[0].history["loss"][0] != pytest.approx(trained[2].history["loss"][0], rel=1e-3)


def test_a_model_that_takes_edge_features_needs_them(parts, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(WITH_EDGES)
    (tmp_path / "optional.py").write_text(WITH_EDGES.replace("edge_attr):", "edge_attr=None):"))
    text = "Mine.forward takes edge_attr. Save the partition with edge_features="
    for method in (fp.train.sampled, fp.train.sdt, fp.train.full):
        with pytest.raises(fp.FastpartError, match=text):
            method(parts, model=f"{file}:Mine", epochs=1, threads=1)
    with pytest.raises(fp.FastpartError, match="NoneType"):  # it is called without
        fp.train.sampled(parts, model=f"{tmp_path}/optional.py:Mine", epochs=1, threads=1)


def test_resumed_training_is_as_if_never_stopped(parts, tmp_path):
    given = {**QUICK, "epochs": 4, "workers": 2}
    assert_goes_on(fp.train.sampled(parts, **given), parts, tmp_path / "out", **given)


@pytest.mark.parametrize("what", ["empty part", "no training vertices"])
def test_parts_that_hold_nothing_take_part(tmp_path, what):
    if what == "empty part":
        parts = planted(tmp_path, k=3, assignment=np.arange(600) % 2 * 2)
    else:
        order = np.random.default_rng(0).permutation(300)
        splits = {"train": order[:150], "val": order[150:], "test": np.arange(300, 600)}
        parts = planted(tmp_path, k=2, assignment=np.arange(600) // 300, splits=splits)
    trained = fp.train.sampled(parts, workers=2, **QUICK)
    (tmp_path / "one").mkdir()
    saved = {} if what == "empty part" else {"splits": splits}
    assert_same(trained, fp.train.sampled(planted(tmp_path / "one", k=1, **saved), **QUICK))


def test_features_stay_what_they_are_on_disk(tmp_path):
    planted(tmp_path)
    features = np.load(tmp_path / "g.bin.features.npy")
    (tmp_path / "half").mkdir()
    half = planted(tmp_path / "half", k=2, features=features.astype(np.float16))
    (tmp_path / "single").mkdir()
    single = planted(tmp_path / "single", k=2, features=features.astype(np.float16).astype(np.float32))
    one, other = (fp.train.sampled(each, workers=2, **QUICK) for each in (half, single))
    assert one.history["loss"].to_list() == other.history["loss"].to_list()
    assert (one.history["remote_bytes"] * 2 == other.history["remote_bytes"]).all()


@pytest.mark.parametrize("model", some_of(MODELS, always=["graphsage", "gat", "clustergcn"]))
def test_layers_compute_with_bfloat16(parts, model):
    given = {**QUICK, "model": model, "hidden": 16, "epochs": 10, "workers": 1, "dropout": 0.1}
    half, single = (fp.train.sampled(parts, precision=each, **given) for each in ("bfloat16", "float32"))
    assert half.history["loss"].to_list() != single.history["loss"].to_list()
    assert half.summary["test_accuracy"] == pytest.approx(single.summary["test_accuracy"], abs=0.1)
    assert {weight.dtype for weight in half.weights.values()} == {torch.float32}


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without GPUs")
def test_gpus_that_are_not_there_are_refused(parts):
    with pytest.raises(
        fp.errors.ParameterError, match=r"device: 'cuda' needs a GPU for each of the 1 processes"
    ):
        fp.train.sampled(parts, device="cuda")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sampling": "best"}, "sampling: unknown value 'best'. Valid values are 'uniform', 'labor'"),
        ({"workers": 0}, "workers"),
        ({"device": "tpu"}, "device: unknown value 'tpu'. Valid values are 'cpu', 'cuda'"),
        (
            {"precision": "half"},
            "precision: unknown value 'half'. Valid values are 'float32', 'float64', 'bfloat16'",
        ),
        ({"batch_size": 0}, "batch_size: 0"),
        ({"fanouts": [5]}, "fanouts: 1 numbers for 2 layers"),
        ({"resume": True}, "resume: needs out="),
    ],
)
def test_refusals(parts, given, message):
    with pytest.raises(fp.errors.ParameterError, match=message):
        fp.train.sampled(parts, **given)


def test_a_directory_without_edges_between_parts_is_refused(tmp_path):
    with pytest.raises(fp.errors.ParameterError, match="lacks the edges between parts"):
        fp.train.sampled(planted(tmp_path, halo_hops=0))


def test_the_command_line(parts, tmp_path, capsys):
    words = ["--hidden", "8", "--threads", "1", "--epochs", "3", "--batch-size", "100", "--fanouts", "4,3"]
    code = main(["train", "sampled", str(parts), *words, "--workers", "2", "--json"])
    out = json.loads(capsys.readouterr().out)
    assert code == 0
    expected = fp.train.sampled(parts, workers=2, **QUICK)
    assert [row["loss"] for row in out["history"]] == expected.history["loss"].to_list()


def test_ranks_of_a_launcher(parts, tmp_path):
    words = ["--hidden", "8", "--epochs", "3", "--batch-size", "100", "--fanouts", "4,3"]
    words += ["-o", tmp_path / "out", "--json", "-q"]
    first, second = run_ranks("fastpart", "train", "sampled", parts, *words)
    assert (first.code, second.code, second.out) == (0, 0, ""), first.errors + second.errors
    losses = [row["loss"] for row in json.loads(first.out)["history"]]
    assert losses == fp.train.sampled(parts, workers=2, **QUICK).history["loss"].to_list()


MACHINE = """
import os, sys, fastpart as fp
rank, folder = os.environ["RANK"], sys.argv[1]
given = {"hidden": 8, "threads": 1, "epochs": 3, "batch_size": 100, "fanouts": [4, 3]}
try:
    trained = fp.train.sampled(f"{folder}/machine{rank}", out=f"{folder}/out", **given, **eval(sys.argv[2]))
except fp.errors.TrainingError as error:
    print(error)
    raise
if rank == "0":
    print(trained.history.select("loss", "val_f1", "remote_rows", "remote_bytes").write_json())
"""


def machines(parts, folder):
    """Give each of two machines a copy of the directory with the features of its own parts only."""
    for rank in range(2):
        shutil.copytree(parts, folder / f"machine{rank}")
        for part in range(3):
            if part * 2 // 3 != rank:
                (folder / f"machine{rank}" / f"part-{part:05d}" / "features.npy").unlink()


@pytest.mark.parametrize("model", ["graphsage", "pyg"])
def test_machines_with_their_own_features_only(parts, tmp_path, mine, model):
    if model == "pyg":  # evaluated at once, not layer by layer
        model = mine(
            "import torch\nclass Mine(torch.nn.Module):\n"
            "    def __init__(self, task, options):\n        super().__init__()\n"
            "        self.linear = torch.nn.Linear(task.features, task.classes)\n"
            "    def forward(self, graphs, x):\n"
            "        for graph in graphs:\n            x = graph.mean(x)\n"
            "        return self.linear(x)\n"
        )
    machines(parts, tmp_path)
    done, _ = run_code(MACHINE, tmp_path, repr({"model": model}))
    assert done.code == 0, done.errors
    found = json.loads(done.out)
    expected = fp.train.sampled(parts, workers=2, model=model, **QUICK).history
    for name in ("loss", "val_f1", "remote_rows"):
        assert [row[name] for row in found] == expected[name].to_list()
    assert all(row["remote_bytes"] > most for row, most in zip(found, expected["remote_bytes"], strict=True))


def test_a_rank_that_hangs_is_named(parts, tmp_path):
    machines(parts, tmp_path)
    code = MACHINE.replace(
        "try:", "import time\ngiven['on_epoch'] = lambda row: time.sleep(8)  # only rank 0 reports\ntry:"
    )
    _, waiting = run_code(code, tmp_path, repr({"timeout": 4}))
    assert waiting.code != 0
    assert "rank 0: no answer to the other ranks" in waiting.out
