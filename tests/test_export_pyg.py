"""PyG finds in an export what the graph says."""

import json
import resource

import numpy as np
import pytest
from hypothesis import given, settings

import fastpart as fp
from exported import cases, triangles

torch = pytest.importorskip("torch")
distributed = pytest.importorskip("torch_geometric.distributed")


def export(folder, case, **options):
    return fp.export.pyg(case.save(folder / "parts"), folder / "pyg", **options)


def check(root, case):
    """Compare everything that PyG loads with the case."""
    edges, m = case.directed_edges(), len(case.records)
    found = {}
    for i in range(case.k):
        graph = distributed.LocalGraphStore.from_partition(str(root), i)
        assert graph.num_partitions == case.k
        assert graph.node_pb.tolist() == list(case.parts)
        owners = [case.parts[edges[e][1]] if e in edges else -1 for e in range(len(graph.edge_pb))]
        assert graph.edge_pb.tolist() == owners
        assert len(graph.edge_pb) == (2 * m if case.kind == "undirected" else m)
        attribute = {"edge_type": None, "layout": "coo", "size": (case.n, case.n), "is_sorted": True}
        sources, targets = (end.tolist() for end in graph.get_edge_index(**attribute))
        ids = graph.get_edge_id(**attribute)
        assert targets == sorted(targets)
        found |= zip(ids.tolist(), zip(sources, targets, strict=True), strict=True)
        assert all(graph.get_partition_ids_from_eids(ids) == i)
        assert all(graph.get_partition_ids_from_nids(torch.tensor(case.members(i), dtype=torch.int64)) == i)
        check_data(root, case, i, ids)
    assert found == edges


def check_data(root, case, i, ids):
    members = case.members(i)
    store = distributed.LocalFeatureStore.from_partition(str(root), i)
    names = {attribute.attr_name for attribute in store.get_all_tensor_attrs()}
    rows = {"x": len(members), "edge_attr": len(ids)} if case.full else {}
    assert names == {name for name, length in rows.items() if length}
    if members:
        assert store.get_global_id(group_name=None).tolist() == members
    if "x" in names:
        assert store.get_tensor(group_name=None, attr_name="x").tolist() == case.features[members].tolist()
    if "edge_attr" in names:
        assert store.get_global_id(group_name=(None, None)).tolist() == ids.tolist()
        records = np.where(ids >= len(case.records), ids - len(case.records), ids)
        rows = store.get_tensor(group_name=(None, None), attr_name="edge_attr")
        assert rows.tolist() == case.edge_features[records].tolist()
    if not case.full:
        assert not any((root / name).exists() for name in ("label.pt", "train-partitions"))
        return
    assert torch.load(root / "label.pt").tolist() == case.labels.tolist()
    for name, mask in case.masks.items():
        stored = torch.load(root / f"{name}-partitions" / f"partition{i}.pt")
        assert stored.tolist() == [v for v in members if mask[v]]


@settings(max_examples=20)
@given(case=cases())
def test_all_that_pyg_loads_is_the_graph(tmp_path_factory, case):
    check(export(tmp_path_factory.mktemp("pyg"), case), case)


@pytest.mark.parametrize("k", [1, 2, 9])
def test_a_graph_with_everything(tmp_path, k):
    root = export(tmp_path, triangles(k))
    assert root == tmp_path / "pyg"
    check(root, triangles(k))
    assert json.loads((root / "META.json").read_text())["num_parts"] == k
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts", "pyg"]


def test_features_are_looked_up_by_old_ids(tmp_path):
    case = triangles()
    store = distributed.LocalFeatureStore.from_partition(str(export(tmp_path, case)), 1)
    wanted = torch.tensor([5, 1])
    rows = store.get_tensor_from_global_id(group_name=None, attr_name="x", index=wanted)
    assert rows.tolist() == case.features[[5, 1]].tolist()


def test_an_earlier_export_is_replaced(tmp_path):
    export(tmp_path, triangles(3))
    check(export(tmp_path, triangles(2)), triangles(2))
    assert not (tmp_path / "pyg" / "part_2").exists()


# 37
@pytest.mark.parametrize("name", ["edge_map.pt", "part_1/graph.pt", "part_1/node_feats.pt"])
def test_a_full_disk_leaves_the_earlier_export(tmp_path, name):
    case = triangles()
    case.features = np.zeros((7, {"part_1/node_feats.pt": 300}.get(name, 3)), np.float32)
    root = export(tmp_path, case)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((root / name).stat().st_size - 1, hard))
    try:
        with pytest.raises(OSError, match=r"pyg.tmp-.*/"):
            fp.export.pyg(tmp_path / "parts", root)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    check(root, case)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["parts", "pyg"]


def test_times_are_loaded(tmp_path):
    graph = fp.open_graph(np.array([[0, 1], [1, 2], [2, 3], [3, 0]]))
    times = {"times": 10 * np.arange(4), "edge_times": 100 + np.arange(4)}
    fp.VertexPartition([0, 1, 0, 1], 2).save(tmp_path / "parts", graph=graph, features=np.eye(4), **times)
    root = fp.export.pyg(tmp_path / "parts", tmp_path / "pyg")
    for i in range(2):
        store = distributed.LocalFeatureStore.from_partition(str(root), i)
        assert store.get_tensor(group_name=None, attr_name="time").tolist() == [10 * i, 10 * i + 20]
        ids = torch.load(root / f"part_{i}" / "graph.pt")["edge_id"]
        rows = torch.load(root / f"part_{i}" / "edge_feats.pt")
        assert rows["global_id"].tolist() == ids.tolist()
        assert rows["edge_time"].tolist() == [100 + int(e) % 4 for e in ids]
