"""DGL finds in an export what the graph says, in the old ids."""

import json
import os
import re
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import fastpart as fp
from exported import Case, cases, triangles
from fastpart.cli import main

torch = pytest.importorskip("torch")
dgl = pytest.importorskip("dgl")
partition = pytest.importorskip("dgl.distributed.partition")


@pytest.fixture(autouse=True)
def _checked(monkeypatch):
    """DGL itself checks each part that it loads."""
    monkeypatch.setenv("DGL_DIST_DEBUG", "1")


def export(folder, case, **options):
    return fp.export.dgl(case.save(folder / "parts"), folder / "dgl", **options)


def array(tensor):
    return tensor.numpy().tolist()


def check(config, case):
    """Compare everything that DGL loads with the case."""
    old_nodes, old_edges = (np.load(config.parent / f"orig_{name}.npy") for name in ("nids", "eids"))
    assert old_nodes.dtype == old_edges.dtype == np.int64
    edges = case.directed_edges()
    assert sorted(old_edges.tolist()) == sorted(edges)
    assert old_nodes.tolist() == [v for i in range(case.k) for v in case.members(i)]
    assert json.loads(config.read_text())["num_parts"] == case.k
    seen = Counter()
    for i in range(case.k):
        graph, node_data, edge_data, book, *_ = partition.load_partition(str(config), i)
        inner = check_nodes(graph, book, case, old_nodes, i)
        ids = graph.edata[dgl.EID]
        assert array(ids) == array(book.partid2eids(i))
        assert set(array(book.eid2partid(ids))) <= {i}
        assert array(book.eid2localeid(ids, i)) == list(range(len(ids)))
        assert array(graph.edata["inner_edge"]) == [1] * len(ids)
        check_edges(graph, case, old_nodes, old_edges[ids.numpy()], edges)
        check_data(node_data, edge_data, case, inner, old_edges[ids.numpy()])
        seen.update(array(graph.ndata[dgl.NID][: len(inner)]))
    assert seen == Counter(range(case.n))


def check_nodes(graph, book, case, old_nodes, i):
    """Compare the vertices of a part, and the book; return the old ids of the inner ones."""
    members = case.members(i)
    ids = graph.ndata[dgl.NID]
    inner = ids[: len(members)]
    assert array(graph.ndata["inner_node"]) == [1] * len(members) + [0] * (len(ids) - len(members))
    assert old_nodes[inner.numpy()].tolist() == members
    assert array(book.partid2nids(i)) == array(inner)
    assert array(book.nid2localnid(inner, i)) == list(range(len(members)))
    owners = [case.parts[v] for v in old_nodes[ids.numpy()]]
    assert array(book.nid2partid(ids)) == array(graph.ndata["part_id"]) == owners
    assert book.metadata()[i]["num_nodes"] == len(members)
    assert book.num_partitions() == case.k
    return members


def check_edges(graph, case, old_nodes, old_edges, edges):
    old = old_nodes[graph.ndata[dgl.NID].numpy()]
    sources, targets = (old[end.numpy()].tolist() for end in graph.edges(order="eid"))
    assert list(zip(sources, targets, strict=True)) == [edges[e] for e in old_edges.tolist()]
    expected, inner = case.in_neighbours(), array(graph.ndata["inner_node"])
    found = in_neighbours(graph, old)
    assert found == [expected[v] if inner[local] else [] for local, v in enumerate(old.tolist())]


def in_neighbours(graph, old):
    """Return the sorted old ids of the sources of the in-edges of each local vertex."""
    indptr, indices, _ = graph.adj_tensors("csc")
    rows = np.split(old[indices.numpy()], indptr[1:-1].numpy())
    return [sorted(row.tolist()) for row in rows[: graph.num_nodes()]]


def check_data(node_data, edge_data, case, inner, old_edges):
    if not case.full:
        assert node_data == edge_data == {}
        return
    assert array(node_data.pop("_N/feat")) == case.features[inner].tolist()
    assert array(node_data.pop("_N/label")) == case.labels[inner].tolist()
    for name, mask in case.masks.items():
        found = node_data.pop(f"_N/{name}_mask")
        assert found.dtype == torch.uint8
        assert array(found) == mask[inner].tolist()
    records = np.where(old_edges >= len(case.records), old_edges - len(case.records), old_edges)
    assert array(edge_data.pop("_N:_E:_N/feat")) == case.edge_features[records].tolist()
    assert node_data == edge_data == {}


@settings(max_examples=20)
@given(case=cases())
def test_all_that_dgl_loads_is_the_graph(tmp_path_factory, case):
    check(export(tmp_path_factory.mktemp("dgl"), case), case)


@pytest.mark.parametrize("k", [1, 2, 9])
def test_a_graph_with_everything(tmp_path, k):
    config = export(tmp_path, triangles(k), graph_name="tri_1.0")
    assert config == tmp_path / "dgl" / "tri_1.0.json"
    check(config, triangles(k))
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_real_graph(tmp_path, datasets):
    edges = fp.convert(datasets / "cora.txt.gz", tmp_path / "cora.bin")
    part = fp.spring(edges, k=4)
    part.save(
        tmp_path / "parts",
        graph=edges,
        labels=datasets / "cora.labels.npy",
        splits=datasets / "cora.split.npz",
    )
    config = fp.export.dgl(tmp_path / "parts", tmp_path / "dgl")
    records = np.fromfile(tmp_path / "cora.bin", np.uint32).reshape(-1, 2)
    case = Case(2708, records, "undirected", part.assignment.tolist(), 4, full=False)
    labels, splits = np.load(datasets / "cora.labels.npy"), np.load(datasets / "cora.split.npz")
    old_nodes = np.load(config.parent / "orig_nids.npy")
    neighbours, counts = case.in_neighbours(), Counter()
    for i in range(4):
        graph, node_data, _, book, *_ = partition.load_partition(str(config), i)
        old = old_nodes[graph.ndata[dgl.NID].numpy()]
        inner = old_nodes[book.partid2nids(i).numpy()]
        assert array(node_data["_N/label"]) == labels[inner].tolist()
        for name in ("train", "val", "test"):
            mask = node_data[f"_N/{name}_mask"].numpy().astype(bool)
            assert inner[mask].tolist() == sorted(set(inner) & set(splits[name]))
            counts[name] += int(mask.sum())
        assert in_neighbours(graph, old)[: len(inner)] == [neighbours[v] for v in inner]
    assert counts == {"train": 140, "val": 500, "test": 1000}


STANDALONE = """
import os, sys, numpy as np, torch, warnings
warnings.simplefilter("ignore")
import dgl
config, records = sys.argv[1], np.load(sys.argv[2]).astype(np.int64)
dgl.distributed.initialize("no-ip-config")
g = dgl.distributed.DistGraph("graph", part_config=config)
nodes, edges = (np.load(f"{os.path.dirname(config)}/orig_{name}.npy") for name in ("nids", "eids"))
assert g.ndata["feat"][torch.arange(g.num_nodes())][:, 0].tolist() == nodes.tolist()
sampled = dgl.distributed.sample_neighbors(g, torch.arange(g.num_nodes()), 2)
sources, targets = (nodes[end.numpy()] for end in sampled.edges())
both = np.concatenate([records, records[:, ::-1]])
assert sampled.num_edges() > 0
assert (both[edges[sampled.edata[dgl.EID].numpy()]] == np.stack([sources, targets], 1)).all()
loader = dgl.dataloading.DistNodeDataLoader(
    g, dgl.distributed.node_split(g.ndata["train_mask"]), dgl.dataloading.NeighborSampler([2, 2]), batch_size=3)
print("batches", [len(seeds) for _, seeds, _ in loader])
"""


def test_unmodified_dgl_samples_from_it(tmp_path):
    case = triangles(1)
    case.features[:, 0] = np.arange(7)
    case.masks["train"] = np.arange(7) < 5
    config = export(tmp_path, case)
    np.save(tmp_path / "records.npy", case.records)
    command = [sys.executable, "-c", STANDALONE, str(config), str(tmp_path / "records.npy")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=50)
    assert done.returncode == 0, done.stderr
    assert "batches [3, 2]" in done.stdout


def test_the_tutorial(tmp_path, capsys):
    page = (Path(__file__).parents[1] / "docs" / "tutorials" / "handing-over.md").read_text()
    (block,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    case = triangles(2)
    case.save(tmp_path / "parts")
    exec(block, {"folder": tmp_path})
    assert f"torch.Size([{len(case.members(0))}, {case.features.shape[1]}])" in capsys.readouterr().out


@pytest.mark.parametrize("dtype", ["float16", "float64", "int8", "uint8", "int64", "bool"])
def test_features_keep_their_type(tmp_path, dtype):
    rows = np.array([[0, 1], [1, 1]]).astype(dtype)
    part = fp.VertexPartition([1, 0], k=2)
    part.save(tmp_path / "parts", graph=np.array([[0, 1]]), features=rows)
    config = fp.export.dgl(tmp_path / "parts", tmp_path / "dgl")
    found = partition.load_partition_feats(str(config), 1)[0]["_N/feat"]
    assert found.dtype == getattr(torch, "uint8" if dtype == "bool" else dtype)
    assert array(found) == [[0, 1]]


def test_types_that_torch_lacks_are_refused(tmp_path):
    partition = fp.VertexPartition([0, 0], k=1)
    partition.save(tmp_path / "parts", graph=np.array([[0, 1]]), features=np.zeros((2, 1), np.uint16))
    for function in (fp.export.dgl, fp.export.pyg):
        with pytest.raises(
            fp.errors.ParameterError, match=r"features of .*parts are uint16, which torch .*float32"
        ):
            function(tmp_path / "parts", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_earlier_export_is_replaced(tmp_path):
    export(tmp_path, triangles(3))
    assert (tmp_path / "dgl" / "part2").is_dir()
    check(export(tmp_path, triangles(2)), triangles(2))
    assert not (tmp_path / "dgl" / "part2").exists()


# 37
@pytest.mark.parametrize("name", ["orig_nids.npy", "orig_eids.npy", "part1/graph.dgl", "part1/node_feat.dgl"])
def test_a_full_disk_leaves_the_earlier_export(tmp_path, name):
    """A limit on the size of files fails a write as a full disk does; DGL itself overlooks the last bytes of a file."""
    case = triangles()
    case.features = np.zeros((7, {"part1/node_feat.dgl": 300}.get(name, 3)), np.float32)
    config = export(tmp_path, case)
    before = config.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "dgl" / name).stat().st_size - 1, hard))
    try:
        with pytest.raises(OSError, match=r"dgl.tmp-.*/"):
            fp.export.dgl(tmp_path / "parts", tmp_path / "dgl")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert config.read_bytes() == before
    check(config, case)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dgl", "parts"]


def test_nothing_is_printed(tmp_path, capfd, recwarn):
    export(tmp_path, triangles())
    assert capfd.readouterr() == ("", "")
    # Saving tells that the splits of the example share vertices.
    assert [each for each in recwarn if not str(each.message).startswith("splits: ")] == []


def test_progress_ends_at_the_total_and_can_cancel(tmp_path):
    seen = []
    export(tmp_path, triangles(), progress=lambda *step: seen.append(step))
    assert [step[1] for step in seen] == sorted(step[1] for step in seen)
    assert seen[0] == ("export", 0, 24)
    assert seen[-1] == ("export", 24, 24)

    def cancel(phase, done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fp.export.dgl(tmp_path / "parts", tmp_path / "other", progress=cancel)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dgl", "parts"]


def test_parts_that_contradict_each_other_are_refused(tmp_path):
    folder = triangles().save(tmp_path / "parts") / "part-00000"
    vertices = np.load(folder / "vertices.npy")
    for bad in (7, -1):
        np.save(folder / "vertices.npy", np.append(vertices[:-1], bad))
        with pytest.raises(
            fp.errors.GraphFormatError, match=r"part-00000/vertices\.npy: expected ids of vertices, 0\.\.6"
        ):
            fp.export.dgl(tmp_path / "parts", tmp_path / "dgl")
    folder = triangles(7, halo_hops=2).save(tmp_path / "parts") / "part-00000"
    sizes = json.loads((folder / "part.json").read_text())
    assert sizes["num_halo"][1] > 0
    indices = np.load(folder / "indices.npy")
    indices[0] = sizes["num_inner"] + sizes["num_halo"][0]
    np.save(folder / "indices.npy", indices)
    with pytest.raises(
        fp.errors.GraphFormatError, match="part-00000: an inner vertex has an in-edge from two hops"
    ):
        fp.export.dgl(tmp_path / "parts", tmp_path / "dgl")
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]


# 4
def test_names_of_any_kind(tmp_path):
    triangles().save(tmp_path / "parts")
    odd = tmp_path / "a b\n%é"
    check(fp.export.dgl(tmp_path / "parts", odd), triangles())
    latin = os.fsencode(tmp_path) + b"/\xff"
    with pytest.raises(fp.errors.ParameterError, match=r"out: .* is not UTF-8, which DGL needs"):
        fp.export.dgl(tmp_path / "parts", latin)
    assert {path.name for path in tmp_path.iterdir()} == {"parts", odd.name}


def test_the_verb(tmp_path, capsys):
    folder = triangles().save(tmp_path / "parts")
    assert main(["export", "dgl", str(folder), f"{tmp_path}/dgl", "--graph-name", "g"]) == 0
    assert capsys.readouterr() == (f"saved to {tmp_path}/dgl/g.json\n", "")
    check(tmp_path / "dgl" / "g.json", triangles())


@pytest.mark.parametrize("threads", [1, 2])
def test_any_number_of_threads(tmp_path, threads):
    check(export(tmp_path, triangles(), threads=threads), triangles())
