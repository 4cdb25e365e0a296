"""DGL finds in an export of a typed graph what the graph says, by type and relation, in the old ids."""

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings

import fastpart as fp
from typed_graphs import Typed, authors, typed_graphs

torch = pytest.importorskip("torch")
dgl = pytest.importorskip("dgl")
partition = pytest.importorskip("dgl.distributed.partition")


@pytest.fixture(autouse=True)
def _checked(monkeypatch):
    """DGL itself checks each part that it loads."""
    monkeypatch.setenv("DGL_DIST_DEBUG", "1")


def contents(graph):
    """Return rows that tell which vertex or record they are of."""
    last = graph.types[-1][0]
    lengths = {each[0]: len(each[4]) for each in graph.relations}
    return {
        "features": {name: 1.0 * np.arange(n)[:, None] for name, n in graph.types},
        "labels": {last: np.arange(graph.types[-1][1])},
        "splits": {last: {"train": np.arange(graph.types[-1][1]) % 2 == 0}},
        "times": {last: 10 * np.arange(graph.types[-1][1])},
        "edge_features": {name: 1.0 * np.arange(m)[:, None] for name, m in lengths.items()},
        "edge_times": {name: np.arange(m) + 5 for name, m in lengths.items()},
    }


def export(folder, graph, **options):
    stored = graph.saved(folder, **contents(graph), **options)
    return fp.export.dgl(stored.folder, folder / "dgl")


def array(tensor):
    return tensor.numpy().tolist()


def check(config, graph):
    """Compare everything that DGL loads with the graph."""
    old_nodes, old_edges = (np.load(config.parent / f"orig_{name}.npy") for name in ("nids", "eids"))
    types = [name for name, _ in graph.types]
    triples = [(source, name, target) for name, source, target in graph.edge_types]
    edges = {id: (number, u, v) for number, _, id, u, v in graph.edges()}
    assert sorted(old_edges.tolist()) == sorted(edges)
    assert json.loads(config.read_text())["num_nodes"] == graph.n
    for part in range(graph.k):
        local, node_data, edge_data, book, _, ntypes, etypes = partition.load_partition(str(config), part)
        assert (ntypes, etypes) == (types, triples)
        assert (local.ndata[dgl.NTYPE].dtype, local.edata[dgl.ETYPE].dtype) == (torch.int16, torch.int32)
        ids = local.ndata[dgl.NID]
        old = old_nodes[ids.numpy()]
        members = [v for v in range(graph.n) if graph.parts[v] == part]
        assert old[: len(members)].tolist() == members
        assert array(local.ndata["inner_node"]) == [1] * len(members) + [0] * (len(old) - len(members))
        kind = [next(at for at, name in enumerate(types) if v in graph.range_of(name)) for v in old]
        assert array(local.ndata[dgl.NTYPE]) == kind
        assert array(book.map_to_per_ntype(ids)[0]) == kind
        assert array(local.ndata["part_id"]) == array(book.nid2partid(ids)) == [graph.parts[v] for v in old]
        check_edges(local, book, part, graph, old, old_edges, edges)
        check_nodes(node_data, graph, members)
        check_edge_data(edge_data, graph, old_edges[local.edata[dgl.EID].numpy()], edges)


def check_edges(local, book, part, graph, old, old_edges, edges):
    """Compare the edges of a part: by their new ids, and by the rows that samplers read."""
    ids = local.edata[dgl.EID]
    assert array(ids) == array(book.partid2eids(part))
    assert array(book.eid2localeid(ids, part)) == list(range(len(ids)))
    ends = (old[end.numpy()].tolist() for end in local.edges(order="eid"))
    numbers = array(local.edata[dgl.ETYPE])
    assert numbers == sorted(numbers) == array(book.map_to_per_etype(ids)[0])
    assert list(zip(numbers, *ends, strict=True)) == [edges[id] for id in old_edges[ids.numpy()].tolist()]
    indptr, indices, order = local.adj_tensors("csc")
    for row, v in enumerate(old.tolist()):
        span = slice(indptr[row], indptr[row + 1])
        old_ids = old_edges[ids[order[span]].numpy()].tolist()
        found = list(zip(old_ids, old[indices[span].numpy()].tolist(), strict=True))
        inner = graph.parts[v] == part
        assert found == [(id, u) for _, _, id, u, target in graph.edges() if target == v and inner]


def check_nodes(node_data, graph, members):
    node_data = dict(node_data)
    for name, _ in graph.types:
        rows = [v - graph.first[name] for v in members if v in graph.range_of(name)]
        assert array(node_data.pop(f"{name}/feat")) == [[row] for row in rows]
    assert array(node_data.pop(f"{name}/label")) == rows
    assert array(node_data.pop(f"{name}/train_mask")) == [row % 2 == 0 for row in rows]
    assert array(node_data.pop(f"{name}/time")) == [10 * row for row in rows]
    assert node_data == {}


def check_edge_data(edge_data, graph, old, edges):
    edge_data = dict(edge_data)
    firsts = np.cumsum([0, *(len(each[4]) for each in graph.relations)])
    for number, (name, source, target) in enumerate(graph.edge_types):
        records = [id % graph.m for id in old.tolist() if edges[id][0] == number]
        rows = [record - firsts[graph.of_record[record]] for record in records]
        assert array(edge_data.pop(f"{source}:{name}:{target}/feat")) == [[row] for row in rows]
        assert array(edge_data.pop(f"{source}:{name}:{target}/time")) == [row + 5 for row in rows]
    assert edge_data == {}


@settings(max_examples=15, deadline=None)
@given(graph=typed_graphs())
def test_all_that_dgl_loads_is_the_graph(tmp_path_factory, graph):
    check(export(tmp_path_factory.mktemp("dgl"), graph), graph)


@pytest.mark.parametrize("hops", [1, 2])
def test_a_graph_with_everything(tmp_path, hops):
    check(export(tmp_path, authors(), halo_hops=hops), authors())


STANDALONE = """
import os, sys, numpy as np, torch, warnings
warnings.simplefilter("ignore")
import dgl
config = sys.argv[1]
dgl.distributed.initialize("no-ip-config")
g = dgl.distributed.DistGraph("graph", part_config=config)
print(g.ntypes, g.etypes)
nodes = torch.arange(g.num_nodes("paper"))
print(g.nodes["paper"].data["feat"][nodes][:, 0].tolist())
sampled = dgl.distributed.sample_etype_neighbors(g, {"paper": nodes}, {etype: 9 for etype in g.canonical_etypes})
for etype in sampled.canonical_etypes:
    u, v = sampled.edges(etype=etype)
    features = g.edges[etype].data["feat"][sampled.edges[etype].data[dgl.EID]][:, 0].tolist()
    print(etype, sorted(zip(u.tolist(), v.tolist(), features)))
"""


def test_unmodified_dgl_samples_from_it(tmp_path):
    """With one part, the ids of each type are those of the user."""
    graph = authors()
    graph = Typed(graph.types, graph.relations, [0] * graph.n, 1)
    config = export(tmp_path, graph)
    command = [sys.executable, "-c", STANDALONE, str(config)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=100)
    assert done.returncode == 0, done.stderr
    names = [name for name, _, _ in graph.edge_types]
    heading = f"{[name for name, _ in graph.types]} {names}"
    lines = done.stdout.splitlines()
    lines = lines[lines.index(heading) + 1 :]
    assert lines[0] == "[0.0, 1.0, 2.0, 3.0]"
    firsts = np.cumsum([0, *(len(each[4]) for each in graph.relations)])
    expected = {}
    for number, record, _, u, v in graph.edges():
        name, source, target = graph.edge_types[number]
        if target == "paper":
            row = (
                u - graph.first[source],
                v - graph.first[target],
                float(record - firsts[graph.of_record[record]]),
            )
            expected.setdefault((source, name, target), []).append(row)
    assert sorted(lines[1:]) == sorted(f"{triple} {sorted(rows)}" for triple, rows in expected.items())
