"""The graphs that are shipped are the ones that datasets/README.md describes, and that its script makes."""

import gzip
import hashlib
import re
import runpy
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import fastpart as fp

SOURCES = Path(__file__).parents[1] / "datasets"


def test_checksums_are_those_of_the_readme(datasets):
    stated = dict(
        re.findall(r"^\| `(\S+)` \| `([0-9a-f]{64})` \|$", (SOURCES / "README.md").read_text(), re.M)
    )
    files = [file for file in datasets.iterdir() if file.suffix in (".gz", ".npy", ".npz")]
    assert stated == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_the_script_makes_them(datasets, shared_data, tmp_path):
    script = runpy.run_path(str(SOURCES / "pack.py"))
    for name in script["NAMES"]:
        script["pack"](shared_data / name, tmp_path)
    for file in tmp_path.iterdir():
        made, shipped = file.read_bytes(), (datasets / file.name).read_bytes()
        # Another zlib may pack differently.
        assert gzip.decompress(made) == gzip.decompress(shipped) if file.suffix == ".gz" else made == shipped
    assert len(list(tmp_path.iterdir())) == 7


@pytest.mark.parametrize(
    ("name", "n", "m", "width"), [("cora", 2708, 5278, 1433), ("amazon-computers", 13752, 245861, 767)]
)
def test_graph(datasets, name, n, m, width):
    with gzip.open(datasets / f"{name}.txt.gz", "rt") as file:
        assert f"# Nodes: {n} Edges: {m}\n" in [file.readline() for _ in range(4)]
        edges = np.loadtxt(file, dtype=np.int64)
    assert edges.shape == (m, 2)
    assert (edges[:, 0] < edges[:, 1]).all()
    assert edges.max() == n - 1
    assert len(np.unique(edges, axis=0)) == m
    labels = np.load(datasets / f"{name}.labels.npy")
    assert labels.dtype == np.int64
    assert labels.shape == (n,)
    features = scipy.sparse.load_npz(datasets / f"{name}.features.npz")
    assert features.shape == (n, width)
    assert features.dtype == np.float32
    assert set(features.data) == {1.0}


def test_split_of_cora(datasets):
    with np.load(datasets / "cora.split.npz") as split:
        assert {name: len(ids) for name, ids in split.items()} == {"train": 140, "val": 500, "test": 1000}
        assert len(np.unique(np.concatenate(list(split.values())))) == 1640


@pytest.mark.parametrize(
    ("load", "m", "width", "sizes"),
    [
        (fp.datasets.cora, 5278, 1433, [140, 500, 1000]),
        (fp.datasets.amazon_computers, 245_861, 767, [9626, 2063, 2063]),
    ],
)
def test_a_shipped_graph_is_partitioned_and_saved_as_it_stands(load, m, width, sizes, datasets, tmp_path):
    data = load()
    n, name = data.graph.num_vertices, load.__name__.replace("_", "-")
    assert (data.graph.num_edges, data.features.shape, data.labels.shape) == (m, (n, width), (n,))
    known = scipy.sparse.load_npz(datasets / f"{name}.features.npz").toarray()
    assert data.features.dtype == np.float32
    assert np.array_equal(data.features, known)
    assert [len(data.splits[split]) for split in ("train", "val", "test")] == sizes
    assert len(np.unique(np.concatenate(list(data.splits.values())))) == sum(sizes)
    p = fp.partition(data.graph, k=4)
    p.save(tmp_path / "parts", features=data.features, labels=data.labels, splits=data.splits)
    assert fp.open_partition(tmp_path / "parts").parts[3].features.shape[1] == width
    assert f"{width} features" in repr(data)


@pytest.mark.parametrize("call", [lambda data: fp.partition(data, 4), lambda data: fp.open_graph(data)])
def test_what_holds_a_graph_is_told_to_pass_it(call):
    data = fp.datasets.cora()
    for holder in (data, fp.partition(data.graph, 4)):
        with pytest.raises(
            TypeError, match=rf"^graph: .*got {type(holder).__name__}, which has one. Pass its .graph$"
        ):
            call(holder)
