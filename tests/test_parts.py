"""Parts read back from a partition directory are those of the definitions, and together they are the graph."""

import gzip
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
import oracles
from fastpart.partitions.partitioners import PARTITIONERS, items_of
from needed import needed
from soaked import examples
from strategies import edge_lists, raw

ROOT = Path(__file__).parents[1]
DIRECTEDNESS = ["undirected", "symmetric", "directed"]
DTYPES = ["float32", "float64", "float16", "uint8", "int64", "bool"]


@st.composite
def cases(draw, items):
    """Return (edges, records, parts, k) of one graph, with a part for each of its "vertices" or "records"."""
    n, records = draw(edge_lists(12, 40))
    edges = fp.open_graph(records, num_vertices=n, directedness=draw(st.sampled_from(DIRECTEDNESS)))
    size = n if items == "vertices" else len(records)
    k = draw(st.integers(1, 6) | st.just(17))
    parts = draw(st.lists(st.integers(0, k - 1), min_size=size, max_size=size))
    return edges, list(map(tuple, records.tolist())), parts, k


def rows(seed, count, dtype="float32", shape=(3,)):
    """Distinguishable rows."""
    values = np.random.default_rng(seed).integers(-100, 100, (count, *shape))
    return values.astype(dtype)


def saved(part, tmp_path_factory, **options):
    folder = tmp_path_factory.mktemp("parts") / "parts"
    part.save(folder, **options)
    return fp.open_partition(folder, graph=options["graph"])


def ids(array):
    assert array.dtype == np.int64
    return array.tolist()


def in_rows(part):
    """Return {vertex: [(source, edge id)]} of a part's rows, from the arrays and from both ways to ask for them."""
    sources, destinations, edges = part.in_edges()
    found = {v: [] for v in part.vertices[: part.num_rows].tolist()}
    for u, v, edge in zip(ids(sources), ids(destinations), ids(edges), strict=True):
        found[v].append((u, edge))
    for row, (v, expected) in enumerate(found.items()):
        assert ids(part.in_neighbours(v)) == [u for u, _ in expected]
        assert ids(part.vertices[part.in_neighbours(row, local=True)]) == [u for u, _ in expected]
    near, far, _ = part.in_edges(local=True)
    assert part.vertices[near].tolist() == sources.tolist()
    assert part.vertices[far].tolist() == destinations.tolist()
    return found


# Vertex partitions.


@examples(15)
@given(case=cases("vertices"), hops=st.integers(0, 2))
def test_vertex_parts_are_the_graph(tmp_path_factory, case, hops):
    edges, records, assignment, k = case
    n, kind = edges.num_vertices, edges.directedness
    loaded = saved(fp.VertexPartition(assignment, k), tmp_path_factory, graph=edges, halo_hops=hops)
    expected = oracles.in_edges(n, records, kind)
    assert len(loaded.parts) == k
    stored = []
    for i, part in enumerate(loaded.parts):
        inner = [v for v in range(n) if assignment[v] == i]
        rings = oracles.rings(n, records, kind, inner, hops)
        halo = [v for ring in rings for v in ring]
        assert part.index == i
        assert (ids(part.inner), ids(part.halo)) == (inner, halo)
        assert (part.num_inner, part.num_halo, sum(part.halo_sizes)) == (len(inner), len(halo), len(halo))
        assert part.halo_sizes[: len(rings)] == tuple(map(len, rings))
        assert part.halo_parts.tolist() == [assignment[v] for v in halo]
        assert part.halo_rows.dtype == np.int32
        assert part.halo_rows.tolist() == [
            sum(assignment[u] == assignment[v] for u in range(v)) for v in halo
        ]
        np.testing.assert_array_equal(part._searched_rows(), part.halo_rows, strict=True)
        assert ids(part.degree) == [len(expected[v]) for v in inner + halo]
        with_row = inner + (rings[0] if hops == 2 else [])
        found = in_rows(part)
        assert list(found) == with_row
        for v in with_row:
            whole = [(u, e) for u, e in expected[v] if hops > 0 or assignment[u] == i]
            assert found[v] == whole
        assert part.num_edges == sum(map(len, found.values()))
        assert part.features is part.labels is part.train is part.edge_features is part.halo_features is None
        stored += [edge for v in inner for _, edge in found[v]]
    directed = oracles.directed_edges(records, kind)
    within = {e for e, (u, v) in directed.items() if hops > 0 or assignment[u] == assignment[v]}
    assert sorted(stored) == sorted(within)
    assert loaded.manifest["num_directed_edges"] == len(directed)


@examples(15)
@given(
    case=cases("vertices"),
    hops=st.integers(0, 2),
    dtype=st.sampled_from(DTYPES),
    shape=st.sampled_from([(1,), (3,), (2, 2), (0,)]),
)
def test_rows_of_vertex_parts(tmp_path_factory, case, hops, dtype, shape):
    edges, _, assignment, k = case
    n, m = edges.num_vertices, edges.num_edges
    features, of_edges = rows(1, n, dtype, shape), rows(2, m, dtype, shape)
    labels = rows(3, n, "int64", ())
    order = np.random.default_rng(4).permutation(n)
    splits = {"train": order[: n // 2], "test": order[n // 2 :][:3]}
    loaded = saved(
        fp.VertexPartition(assignment, k),
        tmp_path_factory,
        graph=edges,
        features=features,
        edge_features=of_edges,
        labels=labels,
        splits=splits,
        halo_hops=hops,
        halo_features=True,
    )
    masks = {name: np.isin(np.arange(n), members) for name, members in splits.items()}
    for part in loaded.parts:
        np.testing.assert_array_equal(part.features, features[part.inner], strict=True)
        np.testing.assert_array_equal(part.halo_features, features[part.halo], strict=True)
        np.testing.assert_array_equal(part.labels, labels[part.inner], strict=True)
        np.testing.assert_array_equal(part.train, masks["train"][part.inner], strict=True)
        np.testing.assert_array_equal(part.test, masks["test"][part.inner], strict=True)
        assert part.val is None
        np.testing.assert_array_equal(part.edge_features, of_edges[part.edge_ids % max(m, 1)], strict=True)


# Edge partitions.


@examples(15)
@given(case=cases("records"))
def test_edge_parts_are_the_graph(tmp_path_factory, case):
    edges, records, assignment, k = case
    n, m, kind = edges.num_vertices, edges.num_edges, edges.directedness
    loaded = saved(fp.EdgePartition(assignment, k), tmp_path_factory, graph=edges)
    parts = list(loaded.parts)
    expected = oracles.in_edges(n, records, kind)
    root = oracles.roots(n, records, assignment, k)
    touched = {v for record in records for v in record}
    stored = []
    for i, part in enumerate(parts):
        here = {v for record, at in zip(records, assignment, strict=True) if at == i for v in record}
        here |= {v for v in range(n) if v not in touched and root[v] == i}
        assert ids(part.vertices) == sorted(here)
        assert (part.num_inner, part.num_halo, part.num_rows) == (len(here), 0, len(here))
        assert part.root.tolist() == [root[v] for v in sorted(here)]
        assert part.num_roots == root.count(i)
        assert part.num_send == len(here) - part.num_roots
        assert ids(part.degree) == [len(expected[v]) for v in sorted(here)]
        for v, found in in_rows(part).items():
            assert found == [(u, e) for u, e in expected[v] if assignment[e % m] == i]
            stored += [edge for _, edge in found]
    assert sorted(stored) == sorted(oracles.directed_edges(records, kind))
    for i, one in enumerate(parts):
        for j, other in enumerate(parts):
            leaves = one.vertices[one.send(j)]
            assert ids(leaves) == [v for v in one.vertices.tolist() if i != j and root[v] == j]
            assert leaves.tolist() == other.vertices[other.recv(i)].tolist()


@examples(10)
@given(case=cases("records"))
def test_partial_degrees_sent_up_and_down_are_the_degrees(tmp_path_factory, case):
    edges, _, assignment, k = case
    parts = saved(fp.EdgePartition(assignment, k), tmp_path_factory, graph=edges).parts
    partial = [np.diff(part.indptr) for part in parts]
    total = [sums.copy() for sums in partial]
    for i, part in enumerate(parts):
        for j in range(k):
            total[j][parts[j].recv(i)] += partial[i][part.send(j)]
    for i, part in enumerate(parts):
        for j in range(k):
            total[i][part.send(j)] = total[j][parts[j].recv(i)]
        assert total[i].tolist() == part.degree.tolist()


@examples(10)
@given(case=cases("records"), dtype=st.sampled_from(DTYPES))
def test_rows_of_edge_parts(tmp_path_factory, case, dtype):
    edges, _, assignment, k = case
    n, m = edges.num_vertices, edges.num_edges
    given = {
        "features": rows(1, n, dtype),
        "labels": rows(2, n, "int64", ()),
        "edge_features": rows(3, m, dtype),
    }
    splits = {name: rows(seed, n, "int64", ()) > 0 for seed, name in enumerate(("train", "val", "test"))}
    loaded = saved(fp.EdgePartition(assignment, k), tmp_path_factory, graph=edges, splits=splits, **given)
    for part in loaded.parts:
        np.testing.assert_array_equal(part.features, given["features"][part.vertices], strict=True)
        np.testing.assert_array_equal(part.labels, given["labels"][part.vertices], strict=True)
        for name, mask in splits.items():
            np.testing.assert_array_equal(getattr(part, name), mask[part.vertices], strict=True)
        of_edges = given["edge_features"][part.edge_ids % max(m, 1)]
        np.testing.assert_array_equal(part.edge_features, of_edges, strict=True)


# Real graphs.


def whole(datasets, name, folder):
    """A real graph as a raw file, with its labels."""
    with gzip.open(datasets / f"{name}.txt.gz", "rt") as file:
        records = np.loadtxt(file, dtype=np.int64)
    labels = np.load(datasets / f"{name}.labels.npy")
    return fp.open_graph(raw(folder / f"{name}.bin", records), num_vertices=len(labels)), records, labels


@pytest.mark.parametrize("name", ["cora", "amazon-computers"])
@pytest.mark.parametrize("hops", [0, 1, 2])
def test_real_graph_with_halos(datasets, tmp_path, name, hops):
    edges, records, labels = whole(datasets, name, tmp_path)
    part = fp.spring(edges, k=8)
    features = rows(0, len(labels), shape=(33,))
    part.save(
        tmp_path / "parts", graph=edges, features=features, labels=labels, halo_hops=hops, halo_features=True
    )
    loaded = fp.open_partition(tmp_path / "parts", graph=edges)
    found = []
    for part in loaded.parts:
        sources, destinations, edge_ids = part.in_edges()
        mine = np.isin(destinations, part.inner)
        found.append(np.stack([destinations, sources], axis=1)[mine])
        # An edge id is the record it came from.
        record = records[edge_ids % len(records)]
        backward = edge_ids >= len(records)
        np.testing.assert_array_equal(np.where(backward, record[:, 1], record[:, 0]), sources)
        np.testing.assert_array_equal(np.where(backward, record[:, 0], record[:, 1]), destinations)
        np.testing.assert_array_equal(part.features, features[part.inner])
        np.testing.assert_array_equal(part.halo_features, features[part.halo])
        np.testing.assert_array_equal(part.labels, labels[part.inner])
        np.testing.assert_array_equal(part.halo_parts, loaded.assignment[part.halo])
        np.testing.assert_array_equal(part.halo_rows, part._searched_rows(), strict=True)
        if hops > 0:
            one = np.setdiff1d(sources[mine], part.inner)
            np.testing.assert_array_equal(part.halo[: len(one)], one)
        if hops == 2:
            two = np.setdiff1d(sources, np.concatenate([part.inner, one]))
            np.testing.assert_array_equal(part.halo[len(one) :], two)
            np.testing.assert_array_equal(np.diff(part.indptr), part.degree[: part.num_rows])
    both = np.concatenate(found)
    directed = np.vstack([records, records[:, ::-1]])
    if hops == 0:
        directed = directed[loaded.assignment[directed[:, 0]] == loaded.assignment[directed[:, 1]]]
    np.testing.assert_array_equal(np.unique(both, axis=0), np.unique(directed, axis=0))
    assert len(both) == len(directed)


@pytest.mark.parametrize("name", [name for name in PARTITIONERS if items_of(name, {}) == "vertices"])
@pytest.mark.parametrize("hops", [0, 1, 2])
def test_rows_of_the_halo_of_every_partitioner(tmp_path, name, hops):
    records = np.random.default_rng(3).integers(0, 120, (2500, 2))
    PARTITIONERS[name](records, k=5, **needed(name, 120)).save(
        tmp_path / "parts", graph=records, halo_hops=hops
    )
    stored = fp.open_partition(tmp_path / "parts")
    assert stored.manifest["schema"] == 3
    for part in stored.parts:
        owners = [stored.parts[owner].inner for owner in range(5)]
        found = [owners[owner][row] for owner, row in zip(part.halo_parts, part.halo_rows, strict=True)]
        assert found == part.halo.tolist()
        np.testing.assert_array_equal(part._searched_rows(), part.halo_rows, strict=True)


def test_threads_write_the_same_bytes(datasets, tmp_path):
    edges, records, labels = whole(datasets, "amazon-computers", tmp_path)
    options = {"features": rows(0, len(labels)), "edge_features": rows(1, len(records)), "labels": labels}
    makers = {
        "vertex": lambda: fp.spring(edges, k=7),
        "edge": lambda: fp.EdgePartition(np.arange(len(records)) % 7, 7),
    }
    for kind, make in makers.items():
        for threads in (1, 2, 3):
            make().save(tmp_path / f"{kind}-{threads}", graph=edges, threads=threads, **options)
        one = tmp_path / f"{kind}-1"
        for file in (path.relative_to(one) for path in one.rglob("*.*")):
            assert (one / file).is_dir() or all(
                (one / file).read_bytes() == (tmp_path / f"{kind}-{threads}" / file).read_bytes()
                for threads in (2, 3)
            ), file


# What the directory is.

SQUARE = np.array([[0, 1], [1, 2], [2, 3], [3, 0], [3, 3]])


def test_files_and_manifest(tmp_path):
    partition = fp.VertexPartition([0, 0, 1, 1], 3)
    partition.save(
        tmp_path / "parts",
        graph=SQUARE,
        features=np.ones((4, 2), np.float32),
        labels=[0, 1, 0, 1],
        splits={"train": [0], "val": [1, 2]},
        edge_features=np.ones((5, 1, 2), np.int16),
        halo_hops=2,
        halo_features=True,
    )
    names = ["assignment.npy", "manifest.json", "metrics.parquet", "part-00000", "part-00001", "part-00002"]
    assert sorted(os.listdir(tmp_path / "parts")) == names
    arrays = "degree edge_features edge_ids features halo_features halo_parts halo_rows "
    arrays += "indices indptr labels train val vertices"
    for name in names[3:]:
        files = [f"{array}.npy" for array in arrays.split()] + ["part.json"]
        assert sorted(os.listdir(tmp_path / "parts" / name)) == sorted(files)
    manifest = fp.open_partition(tmp_path / "parts").manifest
    assert manifest == json.loads((tmp_path / "parts" / "manifest.json").read_text())
    stated = {
        "directedness": "undirected",
        "halo_hops": 2,
        "num_directed_edges": 9,
        "features": {"dtype": "float32", "shape": [2]},
        "halo_features": {"dtype": "float32", "shape": [2]},
        "edge_features": {"dtype": "int16", "shape": [1, 2]},
        "labels": {"dtype": "int64", "shape": []},
        "splits": ["train", "val"],
    }
    assert {name: manifest[name] for name in stated} == stated
    sizes = json.loads((tmp_path / "parts" / "part-00000" / "part.json").read_text())
    assert sizes == {"part": 0, "num_inner": 2, "num_halo": [2, 0], "num_rows": 4, "num_edges": 9}
    empty = json.loads((tmp_path / "parts" / "part-00002" / "part.json").read_text())
    assert empty == {"part": 2, "num_inner": 0, "num_halo": [0, 0], "num_rows": 0, "num_edges": 0}


def test_parts_are_a_sequence_of_read_only_maps(tmp_path):
    fp.VertexPartition([0, 0, 1, 1], 3).save(tmp_path / "parts", graph=SQUARE)
    parts = fp.open_partition(tmp_path / "parts").parts
    assert [part.index for part in parts] == [0, 1, 2]
    assert [part.index for part in parts[::-2]] == [2, 0]
    assert parts[-1].index == 2
    assert repr(parts[0]) == "<VertexPartData 0: 2 inner and 2 halo vertices, 4 in-edges>"
    with pytest.raises(IndexError):
        parts[3]
    for name in ("vertices", "indptr", "indices", "edge_ids", "degree"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(parts[0], name)[...] = 0


def test_rows_that_are_not_here(tmp_path):
    fp.VertexPartition([0, 0, 1, 1], 2).save(tmp_path / "parts", graph=SQUARE)
    part = fp.open_partition(tmp_path / "parts").parts[0]
    for v in (2, 4, 2**40):
        with pytest.raises(
            fp.errors.ParameterError, match=f"v: the in-edges of vertex {v} are not in part 0"
        ):
            part.in_neighbours(v)
    with pytest.raises(fp.errors.ParameterError, match=r"v: 2 is not between 0 and 1"):
        part.in_neighbours(2, local=True)
    fp.EdgePartition([0, 0, 1, 1, 1], 2).save(tmp_path / "parts", graph=SQUARE)
    with pytest.raises(fp.errors.ParameterError, match=r"peer: 2 is not between 0 and 1"):
        fp.open_partition(tmp_path / "parts").parts[0].send(2)


def test_partitions_without_parts_say_how_to_get_them(tmp_path):
    partition = fp.VertexPartition([0, 1], 2)
    with pytest.raises(
        fp.FastpartError,
        match=r"parts: the partition is in memory\. Save the partition to a directory with graph=",
    ):
        _ = partition.parts
    partition.save(tmp_path / "parts")
    with pytest.raises(fp.FastpartError, match=r"parts: .*parts was saved without the graph\. Save"):
        _ = fp.open_partition(tmp_path / "parts").parts


@pytest.mark.parametrize("edges", [np.zeros((0, 2), np.uint32), SQUARE])
def test_an_empty_graph_and_k_above_n(tmp_path, edges):
    n = 0 if len(edges) == 0 else 4
    part = fp.VertexPartition(np.arange(n), 300)
    part.save(tmp_path / "parts", graph=edges, features=np.zeros((n, 5)))
    parts = fp.open_partition(tmp_path / "parts").parts
    assert [part.num_inner for part in parts] == [1] * n + [0] * (300 - n)
    assert parts[299].indptr.tolist() == [0]
    assert parts[299].features.shape == (0, 5)
    assert (tmp_path / "parts" / "part-00299").is_dir()


@pytest.mark.parametrize("kind", ["vertex", "edge"])
def test_reading_without_fastpart_as_documented(tmp_path, monkeypatch, kind):
    part = fp.VertexPartition([0, 0, 1, 1], 3) if kind == "vertex" else fp.EdgePartition([0, 2, 2, 0, 0], 3)
    part.save(tmp_path / "parts", graph=SQUARE, features=np.eye(4), labels=[0, 1, 2, 3])
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "reference" / "partition-directory.md").read_text()
    with_numpy, with_fastpart, *_ = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert "fastpart" not in with_numpy
    found = []
    collect = "\n    found.append((inner, halo, sources, destinations, array['edge_ids'], records))"
    exec(with_numpy.rstrip() + collect, {"found": found})
    parts = fp.open_partition("parts").parts
    for part, (inner, halo, sources, destinations, edge_ids, records) in zip(parts, found, strict=True):
        assert inner.tolist() == part.vertices[: part.num_inner].tolist()
        assert halo.tolist() == part.vertices[part.num_inner :].tolist()
        for one, other in zip((sources, destinations, edge_ids), part.in_edges(), strict=True):
            assert one.tolist() == other.tolist()
        ends = np.sort(np.stack([sources, destinations], axis=1), axis=1)
        assert ends.tolist() == np.sort(SQUARE[records], axis=1).tolist()
    if kind == "vertex":
        exec(with_fastpart, {})
