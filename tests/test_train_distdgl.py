"""Training with DGL's distributed engine on one machine."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp
from distributed import children, planted

pytest.importorskip("torch")
pytest.importorskip("dgl")

pytestmark = pytest.mark.timeout(300)

STEPS = ("sampling", "fetching", "compute", "synchronising")


@pytest.fixture(autouse=True)
def _nothing_left(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    yield
    assert list(temporary.iterdir()) == []
    assert [name for name in os.listdir("/dev/shm") if f"fastpart-{os.getpid()}-" in name] == []
    assert children() == {}


@pytest.fixture(scope="module")
def cora(datasets, tmp_path_factory):
    """Return a function that gives the graph in so many parts, with features of labels and noise."""
    folder = tmp_path_factory.mktemp("cora")
    labels = np.load(datasets / "cora.labels.npy")
    edges = fp.convert(datasets / "cora.txt.gz", folder / "cora.bin", num_vertices=len(labels))
    random = np.random.default_rng(0)
    features = random.normal(size=(len(labels), 32)).astype(np.float32)
    features[np.arange(len(labels)), labels] += 2
    order = random.permutation(len(labels))
    splits = {"train": order[:1500], "val": order[1500:2000], "test": order[2000:]}

    def parts(k):
        out = folder / f"{k}"
        if not out.exists():
            fp.spring(edges, k=k).save(out, graph=edges, features=features, labels=labels, splits=splits)
        return out

    return parts


def check_rows(trained, epochs):
    assert trained.history["epoch"].to_list() == list(range(epochs))
    for row in trained.history.iter_rows(named=True):
        parts = sum(row[f"{step}_seconds"] for step in STEPS)
        assert 0 < parts < row["seconds"] * 1.1
        assert 0 <= row["remote_seeds"] <= 1
        assert row["local_bytes"] > 0


def test_two_parts_learn_as_one_graph(cora, tmp_path):
    options = {"epochs": 30, "lr": 0.01, "batch_size": 500, "hidden": 32}
    seen = []
    trained = fp.train.distdgl(
        cora(2), **options, out=tmp_path / "out", progress=lambda *said: seen.append(said)
    )
    check_rows(trained, 30)
    assert [done for phase, done, total in seen if phase == "epoch"] == list(range(1, 31))
    assert trained.history["remote_bytes"].min() > 0
    assert trained.history["loss"][-1] < trained.history["loss"][0] / 2
    full = fp.train.full(cora(2), **options)
    assert abs(trained.summary["test_accuracy"] - full.summary["test_accuracy"]) < 0.03
    # What the trainers said of the test vertices, each about its own, is what the network says of the whole graph.
    assert exact(trained, cora(2)) == pytest.approx(trained.summary["test_accuracy"])
    resumed = fp.train.distdgl(cora(2), **options, out=tmp_path / "out", resume=True)
    assert resumed.history.equals(trained.history)


def exact(trained, folder):
    from fastpart.train.data.dataset import Dataset

    whole = Dataset(folder).whole()
    logits = trained.network()([whole.graph] * trained.options.layers, whole.features)
    ids = whole.splits["test"]
    return (logits[ids].argmax(1) == whole.labels[ids]).double().mean().item()


def listeners(pids):
    """Return the addresses, in hexadecimal, on which these processes listen, also those for the whole world."""
    inodes = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                inodes.add(os.readlink(descriptor).removeprefix("socket:[").removesuffix("]"))
    lines = [
        line.split()
        for protocol in ("tcp", "tcp6", "udp", "udp6")
        for line in Path(f"/proc/net/{protocol}").read_text().splitlines()[1:]
    ]
    return [line[1].split(":")[0] for line in lines if line[9] in inodes and line[3] in ("0A", "07")]


def test_four_parts_with_samplers_on_loopback_only(cora):
    found = []

    def progress(phase, done, total):
        if phase == "epoch" and done == 1:
            trainers = children()
            samplers = [
                int(pid)
                for pid in trainers
                for pid in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            ]
            assert len(trainers) == 8
            assert len(samplers) >= 4
            found.extend(listeners([*trainers, *samplers]))

    trained = fp.train.distdgl(cora(4), epochs=3, samplers=1, progress=progress)
    check_rows(trained, 3)
    assert len(found) >= 4
    assert set(found) == {"0100007F"}


def test_parts_without_vertices_training_vertices_or_edges(tmp_path):
    # 0 has most, 1 nothing, 2 no training vertex, 3 one vertex without an edge.
    assignment = np.zeros(300, np.int64)
    assignment[200:] = 2
    assignment[-1] = 3
    parts = planted(tmp_path / "parts", 4, assignment, train=np.arange(100), isolated=[299])
    trained = fp.train.distdgl(parts, epochs=20)
    check_rows(trained, 20)
    assert trained.summary["test_accuracy"] > 0.8
    assert trained.history["remote_seeds"].to_list() == [0.75] * 20


def test_fewer_training_vertices_than_trainers(tmp_path):
    config = fp.export.dgl(planted(tmp_path / "parts", 2, train=[3]), tmp_path / "dgl", "tiny")
    trained = fp.train.distdgl(config, epochs=2, trainers_per_part=2, patience=1)
    assert trained.summary["epochs"] == 2
    assert trained.history["loss"].is_finite().all()


FAULTY = """
import torch
class Model(torch.nn.Module):
    def __init__(self, task, options):
        super().__init__()
        self.linear = torch.nn.Linear(task.features + 1, task.classes)
    def forward(self, graphs, x):
        return self.linear(x)
"""


def test_a_model_that_fails(tmp_path):
    (tmp_path / "mine.py").write_text(FAULTY)
    parts = planted(tmp_path / "parts", 2)
    with pytest.raises(
        fp.errors.TrainingError,
        match=r"RuntimeError: mat1 and mat2 shapes .* \(in forward, .*mine.py, line 8\)$",
    ):
        fp.train.distdgl(parts, model=f"{tmp_path / 'mine.py'}:Model")


def test_what_cannot_be_trained_on(tmp_path, monkeypatch):
    parts = planted(tmp_path / "parts", 2)
    with pytest.raises(fp.errors.ParameterError, match="samples neighbours only"):
        fp.train.distdgl(parts, model="clustergcn")
    config = fp.export.dgl(parts, tmp_path / "dgl")
    (parts / "part-00001" / "features.npy").unlink()
    with pytest.raises((FileNotFoundError, fp.errors.GraphFormatError), match=r"part-00001/features\.npy"):
        fp.train.distdgl(parts)
    with monkeypatch.context() as patch:
        patch.setattr(os, "statvfs", lambda path: os.statvfs_result((1, 1, 1, 1, 1000, 1, 1, 1, 1, 1)))
        with pytest.raises(
            fp.errors.MemoryBudgetError, match=r"needs [\d,]+ bytes in /dev/shm for 2 parts, 1,000 are"
        ):
            fp.train.distdgl(config)
    (config.parent / "part1" / "graph.dgl").unlink()
    with pytest.raises(FileNotFoundError, match=r"part1/graph\.dgl"):
        fp.train.distdgl(config)
    config.write_text("{}")
    with pytest.raises(fp.errors.GraphFormatError, match=r"graph\.json: .*not an export to DGL by fastpart"):
        fp.train.distdgl(config)
