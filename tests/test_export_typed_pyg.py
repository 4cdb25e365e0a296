"""The parts of a typed graph as HeteroData of PyG, and by id."""

import numpy as np
import pytest
from hypothesis import given, settings

import fastpart as fp
from fastpart.export.pyg import Writer
from typed_graphs import authors, typed_graphs

torch = pytest.importorskip("torch")
pyg = pytest.importorskip("torch_geometric.data")

pytestmark = pytest.mark.filterwarnings("ignore:The node types .* are isolated")


def contents(graph):
    """Return rows that tell which vertex or record they are of."""
    last, n = graph.types[-1]
    lengths = {each[0]: len(each[4]) for each in graph.relations}
    return {
        "features": {name: 1.0 * np.arange(size)[:, None] for name, size in graph.types},
        "labels": {last: np.arange(n)},
        "splits": {last: {"train": np.arange(n) % 2 == 0}},
        "times": {last: 10 * np.arange(n)},
        "edge_features": {name: 1.0 * np.arange(m)[:, None] for name, m in lengths.items()},
        "edge_times": {name: np.arange(m) + 5 for name, m in lengths.items()},
    }


def export(folder, graph, **options):
    stored = graph.saved(folder, **contents(graph), **options)
    return fp.export.pyg(stored.folder, folder / "pyg")


def expected_edges(graph, part, number):
    """Return the in-edges of a part: id in the relation, and ends in their types."""
    name, source, target = graph.edge_types[number]
    of = next(at for at, each in enumerate(graph.relations) if each[0] == name.removeprefix("rev_"))
    first = graph.of_record.index(of) if of in graph.of_record else 0
    length = len(graph.relations[of][4])
    merged = graph.relations[of][3] == "merged"
    return {
        record - first + (length if merged and id >= graph.m else 0): (
            u - graph.first[source],
            v - graph.first[target],
            record - first,
        )
        for each, record, id, u, v in graph.edges()
        if each == number and graph.parts[v] == part
    }


def check(root, graph):
    """Compare every part with the graph."""
    last = graph.types[-1][0]
    owners = {name: {} for name, _, _ in graph.edge_types}
    for part in range(graph.k):
        data = pyg.HeteroData.from_dict(torch.load(root / f"part_{part}" / "data.pt", weights_only=True))
        assert data.validate()
        assert data.node_types == [name for name, _ in graph.types]
        assert data.edge_types == [(source, name, target) for name, source, target in graph.edge_types]
        inner = [v for v in range(graph.n) if graph.parts[v] == part]
        halo = sorted({u for *_, u, v in graph.edges() if graph.parts[v] == part} - set(inner))
        for name, _ in graph.types:
            store, of = data[name], graph.range_of(name)
            rows = [v - of.start for some in (inner, halo) for v in some if v in of]
            assert store.n_id.tolist() == rows
            assert store.num_inner == sum(v in of for v in inner)
            assert data.x_dict[name].tolist() == [[row] for row in rows]
            if name == last:
                assert (store.y.tolist(), store.time.tolist()) == (rows, [10 * row for row in rows])
                mask = [row % 2 == 0 and at < store.num_inner for at, row in enumerate(rows)]
                assert store.train_mask.tolist() == mask
        for number, (name, source, target) in enumerate(graph.edge_types):
            triple, edges = (source, name, target), expected_edges(graph, part, number)
            store = data[triple]
            u, v = data.edge_index_dict[triple]
            found = zip(data[source].n_id[u].tolist(), data[target].n_id[v].tolist(), strict=True)
            ids = store.e_id.tolist()
            assert dict(zip(ids, found, strict=True)) == {id: ends[:2] for id, ends in edges.items()}
            assert store.edge_attr.tolist() == [[edges[id][2]] for id in ids]
            assert store.time.tolist() == [edges[id][2] + 5 for id in ids]
            owners[name] |= dict.fromkeys(ids, part)
    for name, of in graph.first.items():
        stored = torch.load(root / "node_map" / f"{name}.pt")
        assert stored.tolist() == [graph.parts[v] for v in graph.range_of(name)], of
    for name, source, target in graph.edge_types:
        stored = torch.load(root / "edge_map" / f"{source}__{name}__{target}.pt").tolist()
        assert {id: part for id, part in enumerate(stored) if part >= 0} == owners[name]


@settings(max_examples=10, deadline=None)
@given(graph=typed_graphs())
def test_heterodata_of_every_part_is_the_graph(tmp_path_factory, graph):
    check(export(tmp_path_factory.mktemp("pyg"), graph), graph)


@pytest.mark.parametrize("hops", [1, 2])
def test_a_graph_with_everything(tmp_path, hops):
    check(export(tmp_path, authors(), halo_hops=hops), authors())


def test_types_without_features_have_none(tmp_path):
    stored = authors().saved(tmp_path, features={"paper": np.eye(4, dtype=np.float32)})
    root = fp.export.pyg(stored.folder, tmp_path / "pyg")
    data = pyg.HeteroData.from_dict(torch.load(root / "part_0" / "data.pt"))
    assert list(data.x_dict) == ["paper"]
    assert data["author"].num_nodes == len(data["author"].n_id)


def test_a_heterogeneous_model_runs_on_a_part(tmp_path):
    from torch_geometric.nn import HeteroConv, SAGEConv

    data = pyg.HeteroData.from_dict(torch.load(export(tmp_path, authors()) / "part_1" / "data.pt"))
    layer = HeteroConv({triple: SAGEConv((1, 1), 2) for triple in data.edge_types})
    out = layer({name: x.float() for name, x in data.x_dict.items()}, data.edge_index_dict)
    assert out["paper"].shape == (data["paper"].num_nodes, 2)


def test_the_layout_of_torch_geometric_distributed(tmp_path):
    distributed = pytest.importorskip("torch_geometric.distributed")
    graph = authors()
    root = export(tmp_path, graph)
    for part in range(graph.k):
        edges = distributed.LocalGraphStore.from_partition(str(root), part)
        rows = distributed.LocalFeatureStore.from_partition(str(root), part)
        for number, (name, source, target) in enumerate(graph.edge_types):
            triple = source, name, target
            size = tuple(dict(graph.types)[end] for end in (source, target))
            attribute = {"edge_type": triple, "layout": "coo", "size": size, "is_sorted": True}
            ids, (u, v) = edges.get_edge_id(**attribute).tolist(), edges.get_edge_index(**attribute).tolist()
            expected = expected_edges(graph, part, number)
            assert dict(zip(ids, zip(u, v, strict=True), strict=True)) == {
                id: ends[:2] for id, ends in expected.items()
            }
            assert v == sorted(v)
            assert all(
                edges.get_partition_ids_from_eids(torch.tensor(ids, dtype=torch.int64), triple) == part
            )
        for name, _ in graph.types:
            members = [v - graph.first[name] for v in graph.range_of(name) if graph.parts[v] == part]
            if members:
                wanted = torch.tensor(members[::-1])
                found = rows.get_tensor_from_global_id(group_name=name, attr_name="x", index=wanted)
                assert found[:, 0].tolist() == members[::-1]


def test_arrays_are_written_in_their_order():
    """A set of names would have another order with another hash of text, and the files other bytes."""
    arrays = {name: np.zeros(1) for name in ("rows", "cols", "feats", "time", "label", "ids")} | {"size": 3}
    writer = Writer.__new__(Writer)
    writer._torch = torch
    assert list(writer._tensors(arrays)) == list(arrays)
