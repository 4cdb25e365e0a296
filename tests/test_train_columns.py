"""Means of rows from files of columns: those of rows in memory, bit for bit."""

import logging
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fastpart import _core
from fastpart.partitions.coding import Coding
from ranks import run_code
from soaked import some_of
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import Dataset  # noqa: E402
from fastpart.train.inference import hops, means  # noqa: E402
from fastpart.train.inference.inference import Inference  # noqa: E402
from fastpart.train.inference.means import (  # noqa: E402
    Costs,
    MeansOfRows,
    StoredRows,
)
from fastpart.train.models import build  # noqa: E402
from fastpart.train.options import Options  # noqa: E402

N = 600

CODINGS = {
    "plain": lambda rows: None,
    "row": lambda rows: Coding(rows.shape[1]),
    "column": lambda rows: Coding(rows.shape[1], np.stack([rows[0], np.abs(rows[1]) / 99])),
}


@pytest.fixture(scope="module", params=["plain", "coded"])
def dataset(request, tmp_path_factory):
    folder, coded = tmp_path_factory.mktemp("planted"), {"feature_dtype": "int8"}
    return Dataset(planted(folder, k=3, n=N // 4, m=N // 2, **(coded if request.param == "coded" else {})))


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    return Dataset(planted(tmp_path_factory.mktemp("planted"), k=3, n=N, m=1200))


def outputs_of(dataset, network, folder, wanted=None, free_bytes=0):
    parts = dataset.partition.parts
    inference = Inference(dataset, list(range(len(parts))), folder, 3, free_bytes=free_bytes)
    found = {
        vertex: row
        for part, vertices, rows in inference.outputs(network, wanted)
        for vertex, row in zip(parts[part].inner[vertices].tolist(), rows.tolist(), strict=True)
    }
    assert not list(folder.iterdir())
    return found


def network_of(dataset, model):
    torch.manual_seed(0)
    return build(dataset.task, Options(model=model, hidden=8, layers=3, fanouts=(1, 1, 1)))


def columns_of(most):
    """Return a choice that always splits rows, with so many bytes of a row to a file."""
    return lambda self, rows, stored, wanted: stored.split(most * stored.count)


MODELS = ("graphsage", "graphsage-gcn", "gin", "ngnn", "gcn", "sgc")
BYTES = (1, 13, 1 << 20)


@pytest.mark.parametrize(
    ("model", "most"),
    some_of(product(MODELS, BYTES), [(model, BYTES[number % 3]) for number, model in enumerate(MODELS)]),
)
def test_outputs_from_columns_are_those_from_rows(dataset, tmp_path, monkeypatch, model, most):
    network, parts = network_of(dataset, model), dataset.partition.parts
    some = lambda part: parts[part].inner % 3 == 1  # noqa: E731
    expected = outputs_of(dataset, network, tmp_path), outputs_of(dataset, network, tmp_path, some)
    monkeypatch.setattr(MeansOfRows, "_chosen", columns_of(most))
    assert (outputs_of(dataset, network, tmp_path), outputs_of(dataset, network, tmp_path, some)) == expected
    monkeypatch.setattr(hops, "PIECE_BYTES", 1000)
    monkeypatch.setattr("fastpart.loading.rows.sources.UNWRITTEN", 1000)
    found = outputs_of(dataset, network, tmp_path)
    assert found.keys() == expected[0].keys()
    for vertex, row in found.items():  # other blocks have other products, in the last digits
        np.testing.assert_allclose(row, expected[0][vertex], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("model", some_of(["graphsage", "gcn"], ["gcn"]))
def test_the_way_of_fewer_bytes_is_chosen_and_said(plain, tmp_path, monkeypatch, caplog, model):
    opened = Inference._opened

    def direct(self, name, files):
        return _core.Features(files, self._topology, direct=True) if opened(self, name, files) else None

    network = network_of(plain, model)
    expected = outputs_of(plain, network, tmp_path)
    files = [part.folder / "features.npy" for part in plain.partition.parts]
    if not _core.Features(files, plain.topology, direct=True).is_on_disk:
        pytest.skip("the disk has no direct reads")
    monkeypatch.setattr(Inference, "_opened", direct)
    said = []
    with caplog.at_level(logging.INFO, "fastpart"):
        for size in (64 << 20, 4000):  # of the memory for sums and columns
            monkeypatch.setattr(hops, "PIECE_BYTES", size)
            monkeypatch.setattr(_core, "memory_budget", lambda: 1 << 30)
            found = outputs_of(plain, network, tmp_path)
            said.append(["by sweeps" in line.split(" instead of ")[1] for line in caplog.messages])
            caplog.clear()
            for vertex, row in found.items():
                np.testing.assert_allclose(row, expected[vertex], rtol=1e-4, atol=1e-5)
    assert said == [[False] * 3, [True] * 3]
    monkeypatch.setattr(means, "has_space", lambda folder, size: False)
    with caplog.at_level(logging.INFO, "fastpart"):
        outputs_of(plain, network, tmp_path)
    assert all("too little space" in line for line in caplog.messages)


PROCESS = """
import os, sys, pathlib, torch, torch.distributed as dist
from fastpart.train.inference.inference import Inference
from fastpart.train.data.dataset import Dataset
from fastpart.train.inference.means import MeansOfRows
from test_train_columns import columns_of, network_of
folder, scratch, rank = sys.argv[1], pathlib.Path(sys.argv[2]), int(os.environ["R"])
torch.set_num_threads(1)
dist.init_process_group("gloo", init_method="file://" + folder + "/../wire", rank=rank, world_size=2)
MeansOfRows._chosen = columns_of(13)
dataset = Dataset(folder)
own, parts = ([0, 2], [1])[rank], dataset.partition.parts
for part, vertices, rows in Inference(dataset, own, scratch, 3).outputs(network_of(dataset, "graphsage")):
    for vertex, row in zip(parts[part].inner[vertices].tolist(), rows.tolist()):
        print(vertex, *row)
dist.destroy_process_group()
"""


def test_processes_write_the_columns_of_their_parts(plain, tmp_path):
    (scratch := tmp_path / "scratch").mkdir()
    expected = outputs_of(plain, network_of(plain, "graphsage"), scratch)
    variables = lambda rank: {"R": f"{rank}"}  # noqa: E731
    ranks = run_code(PROCESS, plain.path, scratch, variables=variables, size=2)
    assert [rank.code for rank in ranks] == [0, 0], ranks
    lines = [line.split() for rank in ranks for line in rank.out.splitlines()]
    assert {int(vertex): [float(number) for number in row] for vertex, *row in lines} == expected
    assert not list(scratch.iterdir())


@given(
    width=st.integers(1, 40),
    count=st.integers(1, 50),
    most=st.integers(0, 10_000),
    coded=st.sampled_from(list(CODINGS)),
    seed=st.integers(0, 99),
)
def test_columns_are_those_of_the_decoded_rows(width, count, most, coded, seed):
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(max(count, 2), width)).astype(np.float32)
    coding = CODINGS[coded](numbers)
    rows = numbers
    if coding is not None:
        rows = rng.integers(0, 256, (len(numbers), width), dtype=np.uint8)
        if coding.columns is None:
            rows = np.concatenate([rows, np.abs(numbers.repeat(2, 1)[:, :2]).view(np.uint8)], axis=1)
    stored = StoredRows(len(rows), width, coding)
    assert stored.size == rows.nbytes
    columns = stored.split(most)
    assert [each.end for each in columns[:-1]] == [each.first for each in columns[1:]]
    assert (columns[0].first, columns[-1].end) == (0, width)
    found = []
    for each in columns:
        own = np.ascontiguousarray(each.of(rows))
        assert own.nbytes == each.row_bytes * len(rows)
        assert own.nbytes <= most or each.end - each.first == 1
        found.append(own if each.coding is None else each.coding.decode(own))
    decoded = rows if coding is None else coding.decode(rows)
    np.testing.assert_array_equal(np.concatenate(found, axis=1), decoded)


def test_costs_count_each_read_and_write():
    stored = StoredRows(1000, 10)
    costs = Costs()
    for _ in range(5):  # each needs nearly all rows
        costs.sweep(stored, inner=500, halo=500, vertices=200, edges=10_000)
    assert costs.sweeps == 5 * stored.size + stored.size
    columns = stored.split(stored.size // 2)
    # Rows read and written once, columns read for sums and again, means written and read, lists read once more.
    assert costs.by_columns(stored, columns) == 6 * stored.size + 4 * 50_000
    assert costs.scratch(stored, columns) == 2 * stored.size
    few = Costs()
    few.sweep(stored, inner=500, halo=500, vertices=1, edges=2)
    assert few.sweeps == stored.row_bytes + 2 * (stored.row_bytes + 4096)
