"""Generated graphs: what lies where, the same for a seed, and with the structure they promise."""

import json

import numpy as np
import pytest

import fastpart as fp
from coded import encoded, with_fields
from fastpart.generate import ba, grid, planted, rmat


def everything(folder):
    """Return the names and the bytes of all files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def records(path):
    return np.fromfile(path, "<u4").reshape(-1, 2)


def test_rmat_writes_edges_and_a_sidecar(tmp_path):
    edges = rmat(tmp_path / "g.bin", n=1000, m=5000)
    assert (edges.num_vertices, edges.num_edges, edges.directedness, edges.notes) == (
        1000,
        5000,
        "undirected",
        (),
    )
    assert sorted(everything(tmp_path)) == ["g.bin", "g.bin.json"]
    array = records(tmp_path / "g.bin")
    assert array.shape == (5000, 2)
    assert array.max() < 1000
    checksum = fp.open_graph(array).identify()[1]
    sidecar = json.loads((tmp_path / "g.bin.json").read_text())
    expected = {
        "fastpart": 1,
        "dtype": "u32",
        "n": 1000,
        "m": 5000,
        "directedness": "undirected",
        "checksum": checksum,
    }
    assert sidecar == expected


def test_rmat_has_skewed_degrees(tmp_path):
    degrees = rmat(tmp_path / "g.bin", n=4096, m=40_000).degrees()
    assert degrees.max() > 20 * degrees.mean()
    assert (degrees == 0).sum() > 400


def test_ba_has_skewed_degrees_and_no_loops(tmp_path):
    edges = ba(tmp_path / "g.bin", n=4096, m=40_000)
    degrees = edges.degrees()
    assert degrees.max() > 10 * degrees.mean()
    assert degrees.min() >= 9
    assert edges.identify()[0] == 0
    assert json.loads((tmp_path / "g.bin.json").read_text())["n"] == 4096


def test_grid_has_the_degrees_of_one(tmp_path):
    edges = grid(tmp_path / "g.bin", rows=30, columns=40)
    assert (edges.num_vertices, edges.num_edges) == (1200, 30 * 39 + 40 * 29)
    assert np.bincount(edges.degrees()).tolist() == [0, 0, 4, 2 * 28 + 2 * 38, 28 * 38]
    halves = np.arange(1200) // 600
    assert fp.evaluate(edges, halves).summary["cut_ratio"][0] == 40 / edges.num_edges
    for rows, columns in [(0, 0), (0, 7), (7, 0), (1, 1)]:
        small = grid(tmp_path / "small.bin", rows=rows, columns=columns)
        assert (small.num_vertices, small.num_edges) == (rows * columns, 0)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"rows": -1}, fp.errors.ParameterError, "rows: -1"),
        ({"columns": 2**32}, fp.errors.ParameterError, "columns: 4294967296"),
        ({"rows": 2.0}, TypeError, "rows: expected an integer, got float"),
        (
            {"rows": 2**20, "columns": 2**20},
            fp.errors.ParameterError,
            "n: 1099511627776 vertices. Use at most",
        ),
    ],
)
def test_grids_that_are_refused(tmp_path, given, error, text):
    with pytest.raises(error, match=text):
        grid(tmp_path / "g.bin", **({"rows": 2, "columns": 2} | given))
    assert list(tmp_path.iterdir()) == []


def test_planted_writes_labels_splits_and_features_beside(tmp_path):
    edges = planted(tmp_path / "g.bin", n=600, m=4000, classes=5, features=7)
    assert (edges.num_vertices, edges.num_edges) == (600, 4000)
    names = ["g.bin", "g.bin.features.npy", "g.bin.json", "g.bin.labels.npy", "g.bin.split.npz"]
    assert sorted(everything(tmp_path)) == names
    labels = np.load(tmp_path / "g.bin.labels.npy")
    assert labels.dtype == np.int64
    assert np.bincount(labels).tolist() == [120] * 5
    features = np.load(tmp_path / "g.bin.features.npy")
    assert features.shape == (600, 7)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()
    with np.load(tmp_path / "g.bin.split.npz") as split:
        assert list(split) == ["train", "val", "test"]
        assert np.array_equal(np.sort(np.concatenate(list(split.values()))), np.arange(600))
        assert [len(split[name]) / 600 for name in split] == pytest.approx([0.6, 0.2, 0.2], abs=0.06)
    # What lies beside is what evaluate takes.
    beside = {"labels": tmp_path / "g.bin.labels.npy", "splits": tmp_path / "g.bin.split.npz"}
    totals = fp.evaluate(edges, fp.VertexPartition(labels, 5), **beside).summary
    assert totals["label_skew"][0] == pytest.approx(0.8)
    assert totals["train_balance"][0] < 1.3


def test_planted_without_features_writes_none(tmp_path):
    planted(tmp_path / "g.bin", n=60, m=400)
    assert sorted(everything(tmp_path)) == ["g.bin", "g.bin.json", "g.bin.labels.npy", "g.bin.split.npz"]
    assert np.load(tmp_path / "g.bin.labels.npy").max() == 7


def test_planted_communities_cut_few_edges(tmp_path):
    edges = planted(tmp_path / "g.bin", n=2000, m=40_000, classes=4, seed=5)
    labels = np.load(tmp_path / "g.bin.labels.npy")
    # Four of five records stay inside; of the others a quarter does by chance.
    true = fp.evaluate(edges, labels).summary["cut_ratio"][0]
    assert true == pytest.approx(0.2 * 3 / 4, abs=0.01)
    shuffled = fp.evaluate(edges, np.random.default_rng(0).permutation(labels)).summary["cut_ratio"][0]
    assert shuffled == pytest.approx(3 / 4, abs=0.02)
    assert fp.info(edges)["degrees"]["max"] > 4 * 40


def test_planted_features_tell_the_classes_apart(tmp_path):
    planted(tmp_path / "g.bin", n=3000, m=10, classes=3, features=16)
    labels, features = np.load(tmp_path / "g.bin.labels.npy"), np.load(tmp_path / "g.bin.features.npy")
    centroids = np.stack([features[labels == label].mean(axis=0) for label in range(3)])
    nearest = ((features[:, None] - centroids) ** 2).sum(axis=2).argmin(axis=1)
    assert 0.6 < (nearest == labels).mean() < 0.999


@pytest.mark.parametrize("width", [1, 2, 7, 128])
def test_planted_features_in_fewer_bytes_are_those_of_float32(tmp_path, width):
    found = {}
    for dtype in ("float32", "float16", "int8"):
        planted(tmp_path / f"{dtype}.bin", n=5000, m=1, features=width, feature_dtype=dtype)
        found[dtype] = np.load(tmp_path / f"{dtype}.bin.features.npy")
    assert found["float16"].tobytes() == found["float32"].astype(np.float16).tobytes()
    assert found["int8"].tobytes() == encoded(found["float32"]).tobytes()
    assert found["int8"].dtype == with_fields(encoded(found["float32"])).dtype


def test_planted_rows_with_8_bits_are_partitioned_as_they_are(tmp_path):
    graph = planted(tmp_path / "g.bin", n=600, m=2000, features=5, feature_dtype="int8")
    assert planted(tmp_path / "g.bin", n=600, m=2000, features=5, feature_dtype="int8").num_edges == 2000
    rows = np.load(tmp_path / "g.bin.features.npy")
    fp.spring(graph, k=2).save(tmp_path / "parts", features=tmp_path / "g.bin.features.npy")
    for part in fp.open_partition(tmp_path / "parts").parts:
        assert part.stored_features.tobytes() == rows[part.inner].tobytes()
    with pytest.raises(fp.errors.ParameterError, match="feature_dtype: unknown value 'int4'"):
        planted(tmp_path / "other.bin", n=600, m=2000, features=5, feature_dtype="int4")


# 28: the same bytes on any number of threads.
@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("model", [rmat, planted, ba])
def test_threads_change_no_byte(tmp_path, model, threads):
    more = {"features": 3, "feature_dtype": "int8"} if model is planted else {}
    for name, count in {"one": 1, "many": threads}.items():
        (tmp_path / name).mkdir()
        model(tmp_path / name / "g.bin", n=5000, m=70_000, seed=9, threads=count, **more)
    assert everything(tmp_path / "one") == everything(tmp_path / "many")


@pytest.mark.parametrize("model", [rmat, planted, ba])
def test_seeds_differ(tmp_path, model):
    made = {seed: model(tmp_path / f"{seed}.bin", n=100, m=1000, seed=seed) for seed in (0, 1, 2**64 - 1)}
    checksums = {seed: edges.identify()[1] for seed, edges in made.items()}
    assert len(set(checksums.values())) == 3
    again = model(tmp_path / "again.bin", n=100, m=1000, seed=1)
    assert again.identify()[1] == checksums[1]


@pytest.mark.parametrize("model", [rmat, planted, ba])
@pytest.mark.parametrize(("n", "m"), [(0, 0), (10, 0), (1, 5), (2, 3)])
def test_graphs_of_the_smallest_sizes(tmp_path, model, n, m):
    more = {"classes": max(n, 1), "features": 2} if model is planted else {}
    edges = model(tmp_path / "g.bin", n=n, m=m, **more)
    assert (edges.num_vertices, edges.num_edges) == (n, m)
    assert fp.spring(edges, k=1).loads.tolist() == [n]


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"n": -1}, fp.errors.ParameterError, "n: -1 is not between 0 and"),
        ({"n": 2**32}, fp.errors.ParameterError, "n: 4294967296 is not"),
        ({"n": 10.0}, TypeError, "n: expected an integer, got float"),
        ({"n": 0}, fp.errors.ParameterError, "n: edges need at least one vertex"),
        ({"m": -1}, fp.errors.ParameterError, "m: -1"),
        ({"m": 2**63}, fp.errors.ParameterError, "m: 9223372036854775808"),
        ({"m": "5"}, TypeError, "m: expected an integer, got str"),
        ({"threads": 10**6}, fp.errors.ParameterError, "threads: 1000000"),
        ({"classes": 0}, fp.errors.ParameterError, "classes: 0"),
        ({"classes": 11}, fp.errors.ParameterError, r"classes: 11 classes for 10 vertices\. Use 1\.\.=?10"),
        ({"classes": True}, TypeError, "classes: expected an integer, got bool"),
        ({"features": -1}, fp.errors.ParameterError, "features: -1"),
        ({"features": 2**16 + 1}, fp.errors.ParameterError, "features: 65537"),
        (
            {"memory_limit": 1},
            fp.errors.MemoryBudgetError,
            "labels .* needs 80 bytes of memory, but the budget is 1 bytes",
        ),
    ],
)
def test_parameters_that_are_refused(tmp_path, given, error, text):
    sizes = {"n": 10, "m": 20}
    models = [planted] if {"classes", "features", "memory_limit"} & set(given) else [rmat, planted, ba]
    for model in models:
        more = {"classes": 2} if model is planted else {}
        with pytest.raises(error, match=text):
            model(tmp_path / "g.bin", **(sizes | more | given))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("model", [rmat, planted, ba])
def test_targets_that_are_refused_leave_nothing(tmp_path, model):
    with pytest.raises(FileNotFoundError, match="absent"):
        model(tmp_path / "absent" / "g.bin", n=10, m=20)
    (tmp_path / "folder").mkdir()
    with pytest.raises((fp.errors.ParameterError, IsADirectoryError), match="folder"):
        model(tmp_path / "folder", n=10, m=20)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_graph_replaces_an_older_one(tmp_path):
    rmat(tmp_path / "g.bin", n=10, m=20)
    edges = rmat(tmp_path / "g.bin", n=50, m=30)
    assert (edges.num_vertices, edges.num_edges) == (50, 30)
    assert len(records(tmp_path / "g.bin")) == 30
