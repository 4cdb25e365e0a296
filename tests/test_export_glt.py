"""Torch finds in the layout of GLT what the graph says."""

import pickle
import resource

import numpy as np
import pytest
from hypothesis import given, settings

import fastpart as fp
from exported import Case, cases, triangles
from fastpart.cli import main
from fastpart.core import rows as row_files
from fastpart.store.caches import write_caches

torch = pytest.importorskip("torch")


def export(folder, case, **options):
    return fp.export.glt(case.save(folder / "parts"), folder / "glt", **options)


def pickled(file):
    """Return the tensors that lie pickled in a file, one after the other, as one."""
    tensors = []
    with file.open("rb") as opened:
        while opened.peek(1):
            tensors.append(pickle.load(opened))
    return torch.cat(tensors)


def partition(root, i):
    """Return what GLT loads of a part: META, (rows, cols, eids), features of nodes and of edges, and who owns what."""
    meta = pickle.loads((root / "META").read_bytes())
    graph = [torch.load(root / f"part{i}" / "graph" / f"{name}.pt") for name in ("rows", "cols", "eids")]
    features = {}
    for group in ("node_feat", "edge_feat"):
        folder = root / f"part{i}" / group
        if folder.exists():
            features[group] = {name: pickled(folder / f"{name}.pkl") for name in ("feats", "ids")}
            features[group] |= {file.stem: torch.load(file) for file in folder.glob("*.pt")}
    return meta, graph, features, torch.load(root / "node_pb.pt"), torch.load(root / "edge_pb.pt")


def looked_up(features, i, node_pb):
    """Return features by vertex as a part with a cache finds them, and the book that says which those are.

    The cache lies before the rows of the part and wins over them, as in GLT.
    """
    cached = features.get("cache_ids", features["ids"][:0])
    rows = torch.cat([features.get("cache_feats", features["feats"][:0]), features["feats"]])
    places = torch.zeros(len(node_pb), dtype=torch.int64)
    places[features["ids"]] = torch.arange(len(features["ids"])) + len(cached)
    places[cached] = torch.arange(len(cached))
    book = node_pb.clone()
    book[cached] = i
    return rows[places], book


def check(root, case):
    """Compare everything that GLT loads with the case."""
    edges, m = case.directed_edges(), len(case.records)
    found = {}
    for i in range(case.k):
        meta, (rows, cols, eids), features, node_pb, edge_pb = partition(root, i)
        assert meta == {"num_parts": case.k, "data_cls": "homo", "node_types": None, "edge_types": None}
        assert node_pb.tolist() == list(case.parts)
        assert node_pb.dtype == edge_pb.dtype == rows.dtype == cols.dtype == eids.dtype == torch.int64
        owners = [case.parts[edges[e][1]] if e in edges else -1 for e in range(len(edge_pb))]
        assert edge_pb.tolist() == owners
        assert len(edge_pb) == (2 * m if case.kind == "undirected" else m)
        assert all(node_pb[cols] == i)
        found |= zip(eids.tolist(), zip(rows.tolist(), cols.tolist(), strict=True), strict=True)
        check_data(case, i, features, eids)
        for name, mask in case.masks.items() if case.full else ():
            stored = torch.load(root / f"{name}-partitions" / f"partition{i}.pt")
            assert stored.tolist() == [v for v in case.members(i) if mask[v]]
    assert found == edges
    assert (root / "label.pt").exists() == (root / "train-partitions").exists() == case.full
    if case.full:
        assert torch.load(root / "label.pt").tolist() == case.labels.tolist()


def check_data(case, i, features, eids):
    members = case.members(i)
    present = {"node_feat": members, "edge_feat": len(eids)} if case.full else {}
    assert features.keys() == {group for group, some in present.items() if some}
    if "node_feat" in features:
        assert features["node_feat"]["ids"].tolist() == members
        assert features["node_feat"]["feats"].tolist() == case.features[members].tolist()
    if "edge_feat" in features:
        assert features["edge_feat"]["ids"].tolist() == eids.tolist()
        records = eids.numpy() % len(case.records)
        assert features["edge_feat"]["feats"].tolist() == case.edge_features[records].tolist()


@settings(max_examples=20)
@given(case=cases())
def test_all_that_glt_loads_is_the_graph(tmp_path_factory, case):
    check(export(tmp_path_factory.mktemp("glt"), case), case)


@pytest.mark.parametrize("k", [1, 3, 9])
@pytest.mark.parametrize("kind", ["undirected", "directed"])
def test_a_graph_with_everything(tmp_path, k, kind):
    case = triangles(k)
    case.kind = kind
    root = export(tmp_path, case)
    assert root == tmp_path / "glt"
    check(root, case)


@pytest.mark.parametrize("partitioner", [fp.algorithms.random, fp.sigma])
def test_larger_partitions(tmp_path, partitioner):
    records = np.random.default_rng(1).integers(0, 300, (2000, 2)).astype(np.uint32)
    assignment = partitioner(fp.open_graph(records, num_vertices=300), 3).assignment
    case = Case(300, records, "undirected", assignment.tolist(), 3)
    check(export(tmp_path, case), case)


def test_rows_are_pickled_in_chunks(tmp_path, monkeypatch):
    """No pickle holds more than one chunk, and none drags the array along that its rows were cut from."""
    case = triangles(1)
    whole = export(tmp_path, case) / "part0" / "node_feat" / "feats.pkl"
    size = whole.stat().st_size
    monkeypatch.setattr(row_files, "CHUNK_BYTES", 2 * 12)
    check(export(tmp_path, case), case)
    with whole.open("rb") as opened:
        assert [len(pickle.load(opened)) for _ in range(4)] == [2, 2, 2, 1]
    case.features = np.zeros((7, 3000), np.float32)
    monkeypatch.setattr(row_files, "CHUNK_BYTES", 12000)
    export(tmp_path, case)
    assert whole.stat().st_size < 7 * (12000 + size)


# The cache.


@pytest.mark.parametrize("chunk_bytes", [12, 1 << 20])
def test_cached_rows_are_looked_up_at_home(tmp_path, monkeypatch, chunk_bytes):
    monkeypatch.setattr(row_files, "CHUNK_BYTES", chunk_bytes)
    case = triangles(3)
    cache_ids = {0: [5, 1, 4, 2], 2: np.array([0, 2], np.uint32), 1: []}
    root = export(tmp_path, case, cache_ids=cache_ids)
    check(root, case)
    for i in range(3):
        _, _, features, node_pb, _ = partition(root, i)
        stored = features["node_feat"]
        wanted = [int(v) for v in cache_ids[i]]
        assert ("cache_ids" in stored) == ("cache_feats" in stored) == bool(wanted)
        rows, book = looked_up(stored, i, node_pb)
        at_home = sorted({*case.members(i), *wanted})
        assert np.flatnonzero(book == i).tolist() == at_home
        assert rows[at_home].tolist() == case.features[at_home].tolist()
        if wanted:
            assert stored["cache_ids"].dtype == torch.int64
            assert stored["cache_ids"].tolist() == wanted
            assert stored["cache_feats"].dtype == torch.float32


def test_caches_of_the_directory_are_taken(tmp_path):
    case = triangles(2)
    parts = case.save(tmp_path / "parts")
    write_caches(fp.open_partition(parts), [case.members(1)[:0], case.members(0)[:2]], {})
    held = sorted(case.members(0)[:2])
    stored = partition(fp.export.glt(parts, tmp_path / "glt"), 1)[2]["node_feat"]
    assert stored["cache_ids"].tolist() == held
    assert stored["cache_feats"].tolist() == case.features[held].tolist()
    for cache_ids in ({}, {0: [1]}):
        root = fp.export.glt(parts, tmp_path / "glt", cache_ids=cache_ids, overwrite=True)
        assert "cache_ids" not in partition(root, 1)[2]["node_feat"]
        assert ("cache_ids" in partition(root, 0)[2]["node_feat"]) == bool(cache_ids)
    bare = triangles(2, full=False).save(tmp_path / "bare")
    write_caches(fp.open_partition(bare), [case.members(1)[:0], case.members(0)[:2]], {})
    check(fp.export.glt(bare, tmp_path / "glt", overwrite=True), triangles(2, full=False))


def test_an_empty_part_has_no_cache(tmp_path):
    root = export(tmp_path, triangles(9), cache_ids={8: [1]})
    check(root, triangles(9))


@pytest.mark.parametrize(
    ("cache_ids", "error", "text"),
    [
        ([[1], [2]], TypeError, "cache_ids: expected a mapping of parts to vertices, got list"),
        ({2: [1]}, fp.errors.ParameterError, "cache_ids: part: 2 is not between 0 and 1"),
        ({"0": [1]}, TypeError, "cache_ids: part: expected an integer, got str"),
        ({0: [7]}, fp.errors.ParameterError, r"cache_ids\[0\]: expected vertices, 0\.\.6, got 7\.\.7"),
        ({0: [-1, 3]}, fp.errors.ParameterError, r"cache_ids\[0\]: expected vertices, 0\.\.6, got -1\.\.3"),
        ({1: np.array([2**63], np.uint64)}, fp.errors.ParameterError, r"cache_ids\[1\]: expected vertices"),
        ({0: [1.5]}, fp.errors.ParameterError, r"cache_ids\[0\]: expected a list of vertices, got float64"),
        ({0: [[1]]}, fp.errors.ParameterError, r"expected a list of vertices, got int64 of shape \(1, 1\)"),
        ({0: 3}, fp.errors.ParameterError, r"expected a list of vertices, got int64 of shape \(\)"),
        (
            {0: [3, 3]},
            fp.errors.ParameterError,
            r"cache_ids\[0\]: a vertex is listed twice. Use numpy\.unique",
        ),
    ],
)
def test_caches_of_no_vertices_are_refused(tmp_path, cache_ids, error, text):
    with pytest.raises(error, match=text):
        export(tmp_path, triangles(2), cache_ids=cache_ids)
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


def test_a_cache_needs_features(tmp_path):
    with pytest.raises(fp.errors.ParameterError, match=r"parts holds no features\. Save it with features="):
        export(tmp_path, triangles(2, full=False), cache_ids={0: [1]})


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"nonsense", "not the list of a cache"),
        ([1, 1], "expected ascending ids of vertices of other parts"),
        ([-1], "expected ascending ids"),
        ([7], "expected ascending ids"),
        ([0, 1, 2, 3, 4, 5, 6], "expected ascending ids"),
    ],
)
def test_a_damaged_cache_is_named(tmp_path, content, text):
    case = triangles(2)
    parts = case.save(tmp_path / "parts")
    write_caches(fp.open_partition(parts), [case.members(1)[:0]] * 2, {})
    file = parts / "part-00001" / "cache_ids.npy"
    file.write_bytes(content) if isinstance(content, bytes) else np.save(file, np.array(content))
    with pytest.raises(fp.errors.GraphFormatError, match=rf"part-00001/cache_ids\.npy: .*{text}"):
        fp.export.glt(parts, tmp_path / "glt")
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


# Targets.


def test_an_earlier_export_is_replaced(tmp_path):
    export(tmp_path, triangles(3))
    check(export(tmp_path, triangles(2)), triangles(2))
    assert not (tmp_path / "glt" / "part2").exists()


@pytest.mark.parametrize("name", ["edge_pb.pt", "part1/graph/rows.pt", "part1/node_feat/feats.pkl"])
def test_a_full_disk_leaves_the_earlier_export(tmp_path, name):
    case = triangles(2)
    case.features = np.zeros((7, 300 if "feats" in name else 3), np.float32)
    root = export(tmp_path, case)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((root / name).stat().st_size - 1, hard))
    try:
        with pytest.raises(OSError, match=r"glt.tmp-.*/"):
            fp.export.glt(tmp_path / "parts", root)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    check(root, case)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["glt", "parts"]


def test_the_command(tmp_path, capsys):
    case = triangles(3)
    assert main(["export", "glt", str(case.save(tmp_path / "parts")), f"{tmp_path}/glt"]) == 0
    assert capsys.readouterr() == (f"saved to {tmp_path}/glt\n", "")
    check(tmp_path / "glt", case)
