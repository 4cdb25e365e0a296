"""Features from every container: the same rows in the same parts, chunk by chunk; what does not fit is refused."""

import json
import os
import pickle
import warnings

import numpy as np
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.core import rows
from needed import needing_torch
from soaked import examples
from strategies import raw

EDGES = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [5, 5]], dtype=np.uint32)
"""Two triangles joined by one edge, and a loop."""

PART = fp.VertexPartition([0, 0, 1, 1, 2, 0], 4)
ROWS = np.array([[1, 0, -2], [0, 0, 0], [3, 0, 0], [0, 4, 0], [0, 0, 5], [6, 7, 8]], np.float32)


def npy(folder, array=ROWS):
    np.save(folder / "x.npy", array)
    return folder / "x.npy"


def sparse(folder, matrix=None, **how):
    scipy.sparse.save_npz(folder / "x.npz", scipy.sparse.csr_array(ROWS) if matrix is None else matrix, **how)
    return folder / "x.npz"


def parquet(folder, frame=None, **how):
    frame = pl.DataFrame({name: ROWS[:, i] for i, name in enumerate("abc")}) if frame is None else frame
    frame.write_parquet(folder / "x.parquet", **how)
    return folder / "x.parquet"


def memmap(folder):
    np.save(folder / "x.npy", ROWS)
    return np.load(folder / "x.npy", mmap_mode="r")


def torch_tensor(folder):
    import torch

    return torch.from_numpy(ROWS.copy())


CONTAINERS = {
    ".npy": npy,
    ".npy, Fortran order": lambda folder: npy(folder, np.asfortranarray(ROWS)),
    ".npy, big-endian": lambda folder: npy(folder, ROWS.astype(">f4")),
    ".npy, as str": lambda folder: str(npy(folder)),
    ".npz": sparse,
    ".npz, uncompressed": lambda folder: sparse(folder, compressed=False),
    ".npz, as spmatrix": lambda folder: sparse(folder, scipy.sparse.csr_matrix(ROWS)),
    ".parquet": parquet,
    ".parquet, small row groups": lambda folder: parquet(folder, row_group_size=2),
    "array": lambda folder: ROWS,
    "array, strided": lambda folder: np.repeat(np.repeat(ROWS, 2, axis=0), 3, axis=1)[::2, ::3],
    "array, big-endian": lambda folder: ROWS.astype(">f4"),
    "array, read-only": lambda folder: np.broadcast_to(ROWS, ROWS.shape),
    "memmap": memmap,
    "scipy": lambda folder: scipy.sparse.coo_array(ROWS),
    "torch": torch_tensor,
}


def files(folder):
    """Content of every file below a folder; without the manifest, which may name the input."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*.*"))
        if path.is_file()
    }


@pytest.mark.parametrize("name", needing_torch(CONTAINERS, "torch"))
@pytest.mark.parametrize("chunk", [None, 1, 24])
def test_containers_give_the_same_bytes(tmp_path, monkeypatch, name, chunk):
    PART.save(tmp_path / "expected", graph=EDGES, features=ROWS, halo_features=True)
    if chunk is not None:
        monkeypatch.setattr(rows, "CHUNK_BYTES", chunk)
    PART.save(tmp_path / "parts", graph=EDGES, features=CONTAINERS[name](tmp_path), halo_features=True)
    assert files(tmp_path / "parts") == files(tmp_path / "expected")
    np.testing.assert_array_equal(
        fp.open_partition(tmp_path / "parts").parts[0].features, ROWS[[0, 1, 5]], strict=True
    )


@examples(15)
@given(
    shape=st.tuples(st.integers(0, 9), st.integers(0, 5)),
    dtype=st.sampled_from(["float32", "float64", "int8", "int64", "bool"]),
    chunk=st.integers(1, 100),
    seed=st.integers(0, 100),
)
def test_chunks_of_a_sparse_matrix_are_its_rows(tmp_path_factory, shape, dtype, chunk, seed):
    random = np.random.default_rng(seed)
    dense = (random.integers(1, 9, shape) * (random.random(shape) < 0.3)).astype(dtype)
    path = sparse(tmp_path_factory.mktemp("rows"), scipy.sparse.csr_array(dense))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows, "CHUNK_BYTES", chunk)
        found = rows.rows_of("features", path)
        chunks = list(found.chunks())
    assert found.shape == shape
    assert all(len(part) == 1 or part.nbytes <= chunk or shape[1] == 0 for part in chunks)
    np.testing.assert_array_equal(
        np.concatenate([np.zeros((0, shape[1]), dtype), *chunks]), dense, strict=True
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_rows_that_are_not_finite_are_told_with_the_id(tmp_path, dtype):
    graph = fp.open_graph(np.array([["x", "y"], ["y", "z"], ["z", "w"]]))
    features = np.ones((4, 2), dtype)
    p = fp.VertexPartition([0, 1, 0, 1], 2)
    in_order = "features: the vertices of the graph have ids"
    with warnings.catch_warnings():
        warnings.simplefilter("error", fp.errors.GraphWarning)
        warnings.filterwarnings("ignore", in_order)
        p.save(tmp_path / "parts", graph=graph, features=features, halo_features=True)
    features[1, 0], features[3, 1] = np.inf, np.nan
    first = fp.store.restore([0, 1, 2, 3], graph=graph)["id"][1]
    told = f"^features: 2 rows, the first of them of vertex 1 .id '{first}'. has NaN or infinite numbers"
    with pytest.warns(fp.errors.GraphWarning, match=told) as found:
        p.save(tmp_path / "parts", graph=graph, features=features, halo_features=True)
    assert len([each for each in found if not str(each.message).startswith(in_order)]) == 1


def test_what_a_sparse_matrix_stores_twice_is_summed():
    twice = scipy.sparse.csr_array(([1.0, 2.0, 5.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    assert next(rows.rows_of("features", twice).chunks()).tolist() == [[0, 3], [5, 0]]


def test_columns_of_parquet(tmp_path):
    frame = pl.DataFrame(
        {"a": [1, 2], "name": ["x", "y"], "b": [0.5, 1.5], "c": [True, False], "d": [[1], [2]]}
    )
    with pytest.warns(
        fp.errors.GraphWarning, match="features: .*ignored the columns name, d, which hold no numbers"
    ):
        found = rows.rows_of("features", parquet(tmp_path, frame))
    assert (found.shape, found.dtype) == ((2, 3), np.float64)
    assert next(found.chunks()).tolist() == [[1, 0.5, 1], [2, 1.5, 0]]
    integers = rows.rows_of(
        "features", parquet(tmp_path, pl.DataFrame({"a": [1], "b": pl.Series([2], dtype=pl.Int8)}))
    )
    assert integers.dtype == np.int64


def test_memory_of_a_large_file_is_that_of_a_chunk(tmp_path):
    array = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (100_000, 300))
    array[-1] = 7
    found = rows.rows_of("features", tmp_path / "x.npy")
    sizes = [part.nbytes for part in found.chunks()]
    assert sum(sizes) == array.nbytes
    assert max(sizes) <= rows.CHUNK_BYTES


# Refusals; nothing is left behind.


@pytest.fixture
def refused(tmp_path):
    """Save into a directory; return the text of the refusal."""

    def save(error, match, out="parts", part=PART, **options):
        before = sorted(os.listdir(tmp_path))
        with pytest.raises(error, match=match):
            part.save(f"{tmp_path}/{out}", **{"graph": EDGES, **options})
        assert sorted(os.listdir(tmp_path)) == before

    return save


@pytest.mark.parametrize("name", ["features", "labels"])
@pytest.mark.parametrize("count", [0, 5, 7])
def test_rows_must_be_one_per_vertex(refused, name, count):
    remedy = ".*open the graph with num_vertices=7" if count == 7 else "Give one row per vertex"
    expected = rf"{name}: {count} rows for 6 vertices\. {remedy}"
    refused(fp.errors.ParameterError, expected, **{name: np.zeros(count, int)})


@pytest.mark.parametrize("name", needing_torch([".npy", ".npz", ".parquet", "torch"], "torch"))
def test_rows_of_containers_must_be_one_per_vertex(refused, tmp_path, name):
    features = CONTAINERS[name](tmp_path)
    edges = fp.open_graph(EDGES, num_vertices=7)
    partition = fp.VertexPartition([0] * 7, 1)
    refused(
        fp.errors.ParameterError,
        "features: 6 rows for 7 vertices",
        features=features,
        graph=edges,
        part=partition,
    )


def test_edge_features_must_be_one_per_record(refused):
    refused(
        fp.errors.ParameterError,
        "edge_features: 6 rows for 8 records. Expected one row per record",
        edge_features=ROWS,
    )


@pytest.mark.parametrize(
    ("features", "error", "text"),
    [
        (np.array([None] * 6), TypeError, "features: expected real numbers or bools, got dtype object"),
        (np.array(["a"] * 6), TypeError, "features: .* got dtype <U1"),
        (np.zeros(6, "datetime64[s]"), TypeError, "features: .* got dtype datetime64"),
        (np.zeros(6, [("a", int)]), TypeError, "features: .* got dtype"),
        (np.array(3), fp.errors.ParameterError, "features: .* got a single number"),
        (
            np.zeros(6, "complex64"),
            TypeError,
            "features: expected real numbers or bools, got dtype complex64",
        ),
        (
            np.zeros(6),
            fp.errors.ParameterError,
            r"features: shape \(6,\), .* Give a single feature the shape \(6, 1\)",
        ),
        (np.ma.masked_array(ROWS), TypeError, r"features: expected a \.npy, .*, got MaskedArray"),
        (ROWS.tolist(), TypeError, r"features: expected a \.npy, .*, got list"),
        (7, TypeError, "features: expected .*, got int"),
        ("x.bin", fp.errors.ParameterError, r"features: unknown suffix '\.bin'"),
        ("absent.csv", FileNotFoundError, r"absent\.csv"),
        ("absent.npy", FileNotFoundError, r"absent\.npy"),
        ("/", fp.errors.GraphFormatError, "not a regular file"),
    ],
)
def test_what_holds_no_rows(refused, features, error, text):
    refused(error, text, features=features)


@pytest.mark.torch
def test_tensors_that_are_no_arrays(refused):
    import torch

    for tensor in (torch.zeros(6, dtype=torch.bfloat16), torch.eye(6).to_sparse()):
        refused(TypeError, r"features: the tensor cannot become a numpy array \(.*\)\. Pass", features=tensor)


def test_damaged_npy(refused, tmp_path):
    good = npy(tmp_path).read_bytes()
    for bad in (b"", good[:60], good[:-1], good.replace(b"(6,", b"(9,"), b"PK\x03\x04", pickle.dumps(ROWS)):
        (tmp_path / "x.npy").write_bytes(bad)
        refused(
            fp.errors.GraphFormatError,
            r"x\.npy: not a \.npy array of numbers \(.+\)",
            features=tmp_path / "x.npy",
        )
    np.save(tmp_path / "x.npy", np.array([None] * 6), allow_pickle=True)
    refused(fp.errors.GraphFormatError, r"x\.npy: .*Python objects", features=tmp_path / "x.npy")


CSR = {
    "data": np.array([1.0, 2.0]),
    "indices": np.array([0, 1]),
    "indptr": np.array([0, 1, 1, 1, 1, 1, 2]),
    "shape": np.array([6, 2]),
    "format": np.array(b"csr"),
}


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (
            {"format": np.array(b"csc")},
            fp.errors.ParameterError,
            r"holds a matrix in format 'csc'\. Save \.tocsr\(\)",
        ),
        ({"format": np.array([1, 2])}, fp.errors.GraphFormatError, "not a scipy sparse matrix"),
        ({"shape": None}, fp.errors.GraphFormatError, r"not a scipy sparse matrix.*shape"),
        ({"shape": np.array([6, 2, 2])}, fp.errors.GraphFormatError, "not a scipy sparse matrix"),
        ({"shape": np.array([5, 2])}, fp.errors.GraphFormatError, r"x\.npz: .* contradict each other"),
        ({"shape": np.array([6, -2])}, fp.errors.GraphFormatError, r"x\.npz: .* contradict each other"),
        ({"indices": np.array([0, 2])}, fp.errors.GraphFormatError, r"x\.npz: .* contradict each other"),
        ({"indices": np.array([0, -1])}, fp.errors.GraphFormatError, r"x\.npz: .* contradict each other"),
        ({"indices": np.array([0])}, fp.errors.GraphFormatError, r"x\.npz: .* contradict each other"),
        (
            {"indptr": np.array([0, 9, 1, 1, 1, 1, 2])},
            fp.errors.GraphFormatError,
            r"x\.npz: .* contradict each other",
        ),
        (
            {"indptr": np.array([0, 1, 1, 1, 1, 1, 3])},
            fp.errors.GraphFormatError,
            r"x\.npz: .* contradict each other",
        ),
        ({"data": np.array([1, None])}, fp.errors.GraphFormatError, "not a scipy sparse matrix"),
        (
            {"data": np.array(["a", "b"])},
            fp.errors.GraphFormatError,
            "a sparse matrix of real numbers or bools, got dtype <U1",
        ),
    ],
)
def test_damaged_npz(refused, tmp_path, change, error, text):
    members = {name: value for name, value in (CSR | change).items() if value is not None}
    np.savez(tmp_path / "x.npz", **members)
    refused(error, text, features=tmp_path / "x.npz")


def test_what_a_sparse_matrix_stores_must_fit(refused, tmp_path):
    n = 500_000
    features = sparse(tmp_path, scipy.sparse.csr_array((n, 4)))
    given = {"features": features, "graph": fp.open_graph(EDGES, num_vertices=n), "threads": 1}
    text = r"features: the entries of .*x\.npz need 2\.0 MB of memory, but the budget is 1\.0 MB\. Raise memory_limit"
    refused(
        fp.errors.MemoryBudgetError,
        text,
        part=fp.VertexPartition(np.zeros(n, int), 1),
        memory_limit=10**6,
        **given,
    )


def test_npz_that_is_no_archive(refused, tmp_path):
    good = sparse(tmp_path).read_bytes()
    for bad in (b"", good[:100], b"\x80\x04pickle", bytes(1000)):
        (tmp_path / "x.npz").write_bytes(bad)
        refused(fp.errors.GraphFormatError, r"x\.npz: not a scipy sparse matrix", features=tmp_path / "x.npz")


def test_damaged_parquet(refused, tmp_path):
    good = parquet(tmp_path).read_bytes()
    for bad in (b"", good[:-9], b"PAR1" + bytes(50) + b"PAR1", bytes(1000)):
        (tmp_path / "x.parquet").write_bytes(bad)
        refused(
            fp.errors.GraphFormatError, r"x\.parquet: not a Parquet file", features=tmp_path / "x.parquet"
        )
    parquet(tmp_path, pl.DataFrame({"a": list("abcdef")}))
    refused(fp.errors.ParameterError, r"x\.parquet has no column of numbers", features=tmp_path / "x.parquet")
    parquet(tmp_path, pl.DataFrame({"a": [1, 2, None, 4, 5, 6]}))
    refused(
        fp.errors.ParameterError,
        r"column 'a' of .*x\.parquet is null in row 2",
        features=tmp_path / "x.parquet",
    )


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"halo_hops": 3}, fp.errors.ParameterError, "halo_hops: 3 is not one of 0, 1, 2"),
        ({"halo_hops": -1}, fp.errors.ParameterError, "halo_hops: -1"),
        ({"halo_hops": "1"}, TypeError, "halo_hops: expected an integer, got str"),
        ({"halo_hops": True}, TypeError, "halo_hops: expected an integer, got bool"),
        ({"halo_features": 1}, TypeError, "halo_features: expected True or False, got int"),
        (
            {"halo_features": True},
            fp.errors.ParameterError,
            "halo_features: there are no features. Pass features=",
        ),
        ({"feature": ROWS}, TypeError, "has no parameter 'feature'"),
    ],
)
def test_options_that_cannot_be(refused, options, error, text):
    refused(error, text, **options)


ONLY_DIRECTORIES = {
    "features": ROWS,
    "labels": np.zeros(6, int),
    "splits": {"train": [0]},
    "edge_features": np.zeros(8),
    "times": np.zeros(6, int),
    "edge_times": np.zeros(8, int),
    "halo_hops": 2,
    "split": 0,
}


@pytest.mark.parametrize("name", ONLY_DIRECTORIES)
def test_what_belongs_to_a_directory(refused, name):
    given = {name: ONLY_DIRECTORIES[name]}
    for out in ("part.npy", "part.txt", "part.parquet"):
        refused(
            fp.errors.ParameterError,
            f"{name}: needs a partition directory. Choose an output without",
            out,
            **given,
        )
    refused(fp.errors.ParameterError, f"{name}: needs graph=", graph=None, **given)


def test_edge_partitions_have_no_halo(refused):
    partition = fp.EdgePartition([0] * 8, 1)
    for halo in ({"halo_hops": 2}, {"halo_features": True, "features": ROWS}):
        refused(
            fp.errors.ParameterError,
            "halo_.*: the parts of an edge partition have no halo",
            part=partition,
            **halo,
        )


@pytest.mark.parametrize("name", ["features", "labels", "splits", "edge_features", "times", "graph"])
@pytest.mark.parametrize("as_memmap", [False, True])
def test_inputs_within_the_directory_that_is_replaced_are_kept(refused, tmp_path, name, as_memmap):
    PART.save(tmp_path / "parts", graph=EDGES)
    mine = tmp_path / "parts" / "mine.npy"
    np.save(mine, EDGES if name == "graph" else np.zeros(6, int))
    (tmp_path / "link").symlink_to(tmp_path / "parts")
    given = {name: tmp_path / "link" / "mine.npy"}
    if as_memmap and name != "graph":
        given = {name: np.load(mine, mmap_mode="r")}
    refused(fp.errors.ParameterError, f"({name}|out): .*(would be deleted)", **given)
    assert mine.exists()


# The command line.


def test_command(tmp_path, capsys):
    from fastpart.cli import main

    graph = raw(tmp_path / "g.bin", EDGES)
    np.save(tmp_path / "labels.npy", np.arange(6))
    np.savez(tmp_path / "splits.npz", train=[0, 1])
    np.save(tmp_path / "e.npy", np.arange(8))
    partition = f"partition {graph} -k 2 --algorithm spring"
    contents = (
        f"--features {npy(tmp_path)} --labels {tmp_path}/labels.npy --splits {tmp_path}/splits.npz "
        f"--edge-features {tmp_path}/e.npy --halo-hops 2 --halo-features"
    )
    assert main(f"{partition} {contents} -o {tmp_path}/parts".split()) == 0
    loaded = fp.open_partition(tmp_path / "parts", graph=graph)
    assert loaded.manifest["halo_hops"] == 2
    for part in loaded.parts:
        np.testing.assert_array_equal(part.features, ROWS[part.inner])
        np.testing.assert_array_equal(part.halo_features, ROWS[part.halo])
        np.testing.assert_array_equal(part.labels, part.inner)
        np.testing.assert_array_equal(part.train, part.inner < 2)
        np.testing.assert_array_equal(part.edge_features, part.edge_ids % 8)
    capsys.readouterr()
    for arguments, text in (
        ("--halo-hops 3 -o new", "--halo-hops: 3 is not one of 0, 1, 2"),
        ("--halo-hops x -o new", "'x' is not a number"),
        (f"--features {tmp_path}/x.npy", "features: needs a partition directory"),
        (f"--features {tmp_path}/x.npy -o {tmp_path}/new.npy", "features: needs a partition directory"),
        (f"--features {tmp_path}/e.npy -o {tmp_path}/new", "features: 8 rows for 6 vertices"),
        (f"--halo-features -o {tmp_path}/new", "--halo-features: there are no features"),
    ):
        assert main([*partition.split(), *arguments.split()]) == 2
        assert text in capsys.readouterr().err
    assert main(f"{partition} --labels {tmp_path}/labels.npy -o {tmp_path}/new.npy --json".split()) == 0
    assert "label_skew" in json.loads(capsys.readouterr().out)["summary"]
