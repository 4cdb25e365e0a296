"""Times of vertices and of records in a partition directory."""

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main

N, M = 40, 150
RECORDS = np.random.default_rng(0).integers(0, N, (M, 2), dtype=np.uint32)
TIMES = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, N)
EDGE_TIMES = np.random.default_rng(2).integers(-(2**63), 2**63 - 1, M)


@pytest.mark.parametrize("directedness", ["undirected", "directed"])
@pytest.mark.parametrize("hops", [0, 1, 2])
def test_vertex_parts(tmp_path, directedness, hops):
    graph = fp.open_graph(RECORDS, num_vertices=N, directedness=directedness)
    p = fp.spring(graph, k=3)
    p.save(tmp_path / "parts", times=TIMES, edge_times=EDGE_TIMES, halo_hops=hops)
    loaded = fp.open_partition(tmp_path / "parts", graph=graph)
    for part in loaded.parts:
        np.testing.assert_array_equal(part.times, TIMES[part.inner], strict=True)
        np.testing.assert_array_equal(part.edge_times, EDGE_TIMES[part.edge_ids % M], strict=True)
    assert loaded.manifest["times"] == loaded.manifest["edge_times"] == {"dtype": "int64", "shape": []}
    fp.store.verify(tmp_path / "parts")


def test_edge_parts(tmp_path):
    graph = fp.open_graph(RECORDS, num_vertices=N)
    fp.sigma(graph, k=3, of="edges").save(tmp_path / "parts", times=TIMES, edge_times=EDGE_TIMES)
    for part in fp.open_partition(tmp_path / "parts").parts:
        np.testing.assert_array_equal(part.times, TIMES[part.vertices], strict=True)
        np.testing.assert_array_equal(part.edge_times, EDGE_TIMES[part.edge_ids % M], strict=True)


def test_parts_without_times(tmp_path):
    fp.spring(RECORDS, k=2).save(tmp_path / "parts")
    for part in fp.open_partition(tmp_path / "parts").parts:
        assert part.times is part.edge_times is None


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64"])
def test_small_types_become_int64(tmp_path, dtype):
    given = np.arange(N).astype(dtype)[:, None]
    fp.spring(fp.open_graph(RECORDS, num_vertices=N), k=2).save(tmp_path / "parts", times=given)
    for part in fp.open_partition(tmp_path / "parts").parts:
        np.testing.assert_array_equal(part.times, part.inner, strict=True)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"times": TIMES[1:]}, fp.errors.ParameterError, "times: 39 rows for 40 vertices"),
        ({"edge_times": EDGE_TIMES[1:]}, fp.errors.ParameterError, "edge_times: 149 rows for 150 records"),
        ({"times": TIMES * 1.0}, TypeError, "times: expected whole numbers of int64, got float64"),
        ({"times": TIMES.view(np.uint64)}, TypeError, "times: expected whole numbers of int64, got uint64"),
        ({"edge_times": EDGE_TIMES > 0}, TypeError, "edge_times: expected whole numbers of int64, got bool"),
        (
            {"times": np.zeros((N, 2), int)},
            fp.errors.ParameterError,
            r"times: shape \(40, 2\), expected one number per row",
        ),
    ],
)
def test_refusals(tmp_path, given, error, message):
    p = fp.spring(fp.open_graph(RECORDS, num_vertices=N), k=2)
    with pytest.raises(error, match=message):
        p.save(tmp_path / "parts", **given)
    assert not (tmp_path / "parts").exists()


def test_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fp.generate.rmat("g.bin", n=N, m=M)
    np.save("t.npy", TIMES)
    np.save("e.npy", EDGE_TIMES)
    words = "partition g.bin -k 2 --algorithm spring -o parts/ --times t.npy --edge-times e.npy"
    assert main(words.split()) == 0
    part = fp.open_partition("parts").parts[0]
    np.testing.assert_array_equal(part.times, TIMES[part.inner])
