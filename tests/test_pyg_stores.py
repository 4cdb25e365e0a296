"""PyG's models train on our batches, and PyG's NodeLoader on our stores and sampler."""

import pickle

import numpy as np
import pytest

import fastpart as fp
import oracles

torch = pytest.importorskip("torch")
pytest.importorskip("torch_geometric")

from torch_geometric.data import Data  # noqa: E402
from torch_geometric.loader import NodeLoader  # noqa: E402
from torch_geometric.nn import GAT, GATConv, GraphSAGE, SAGEConv  # noqa: E402
from torch_geometric.utils import trim_to_layer  # noqa: E402

from loaded import attributed, stored  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("pyg") / "parts", 4, dtype=np.float32)


def edges_of(parts):
    """Return ends, ids and features of all in-edges."""
    pieces = [part.in_edges() for part in parts.parts]
    sources, targets, ids = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    features = np.concatenate([part.edge_features for part in parts.parts])
    return torch.from_numpy(np.stack([sources, targets])), ids, torch.from_numpy(features)


MODELS = {
    "sage": lambda: GraphSAGE(6, 8, num_layers=2, out_channels=3),
    "gat": lambda: GAT(6, 8, num_layers=2, out_channels=3, heads=2),
    "gat with edges": lambda: GAT(6, 8, num_layers=2, out_channels=3, edge_dim=2),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("merged", [False, True])
def test_full_neighbourhoods_give_what_the_whole_graph_gives(parts, tmp_path, name, merged):
    if not merged:  # GAT replaces loops by its own, but takes a loop between levels for another edge
        parts = stored(tmp_path / "parts", 4, dtype=np.float32, loops=False)
    torch.manual_seed(0)
    model = MODELS[name]().double().eval()
    _, rows = attributed(dtype=np.float32)
    x = torch.from_numpy(rows["features"]).double()
    edge_index, _, edge_attr = edges_of(parts)
    given = {"edge_attr": edge_attr} if name == "gat with edges" else {}
    with torch.no_grad():
        expected = model(x, edge_index, **given)
        for batch in parts.loader("val", fanouts=[-1, -1], batch_size=16, merged=merged):
            given = {"edge_attr": batch.edge_attr} if name == "gat with edges" else {}
            found = model(batch.x.double(), batch.edge_index, **given)
            seeds = batch.n_id[: batch.batch_size]
            torch.testing.assert_close(found[: batch.batch_size], expected[seeds])
            trimmed = model(
                batch.x.double(),
                batch.edge_index,
                num_sampled_nodes_per_hop=batch.num_sampled_nodes,
                num_sampled_edges_per_hop=batch.num_sampled_edges,
                **given,
            )
            torch.testing.assert_close(trimmed[: batch.batch_size], expected[seeds])


@pytest.mark.parametrize("conv", [SAGEConv, GATConv])
def test_layers_that_are_trimmed_by_hand(parts, conv):
    torch.manual_seed(0)
    layers = torch.nn.ModuleList([conv(6, 8), conv(8, 3)])
    batch = next(iter(parts.loader(fanouts=[3, 3], batch_size=20)))
    x, edge_index = batch.x, batch.edge_index
    for i, layer in enumerate(layers):
        x, edge_index, _ = trim_to_layer(i, batch.num_sampled_nodes, batch.num_sampled_edges, x, edge_index)
        x = layer(x, edge_index)
    h = batch.x
    for layer, block in zip(layers, batch.blocks(), strict=True):
        h = layer(h, block.edge_index)[: block.num_targets]
    torch.testing.assert_close(x[: batch.batch_size], h)


@pytest.mark.parametrize("name", MODELS)
def test_models_of_pyg_learn(parts, name):
    torch.manual_seed(0)
    model = MODELS[name]()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    loader = parts.loader(fanouts=[4, 4], batch_size=32)
    means = []
    for _ in range(10):
        losses = []
        for batch in loader:
            given = {"edge_attr": batch.edge_attr.float()} if name == "gat with edges" else {}
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index, **given)[: batch.batch_size]
            loss = torch.nn.functional.cross_entropy(out, batch.y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        means.append(np.mean(losses))
    assert means[-1] < 0.95 * means[0]


def test_an_empty_batch_goes_through_a_model(parts):
    model = GraphSAGE(6, 8, num_layers=2, out_channels=3)
    for rank in range(9):
        for batch in parts.loader([0], fanouts=[2, 2], rank=rank, world_size=9):
            out = model(batch.x, batch.edge_index)
            loss = torch.nn.functional.cross_entropy(
                out[: batch.batch_size], batch.y.clamp(min=0), reduction="sum"
            )
            loss.backward()
            assert batch.batch_size in (0, 1)


# PyG's own loader.


def node_loader(parts, fanouts=(3, 3), **given):
    stores = fp.pyg.feature_store(parts), fp.pyg.graph_store(parts)
    options = {"input_nodes": torch.arange(300), "batch_size": 64} | given
    settings = {
        name: options.pop(name) for name in ("sampling", "weights", "seed", "merged") if name in options
    }
    return NodeLoader(stores, node_sampler=fp.pyg.sampler(parts, fanouts, **settings), **options)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("merged", [False, True])
def test_batches_of_the_node_loader(parts, workers, merged):
    _, rows = attributed(dtype=np.float32)
    edge_index, ids, _ = edges_of(parts)
    ends = dict(zip(ids.tolist(), zip(*edge_index.tolist(), strict=True), strict=True))
    mask = np.isin(np.arange(300), rows["splits"]["train"])
    seeds = []
    for batch in node_loader(parts, num_workers=workers, merged=merged):
        assert isinstance(batch, Data)
        nodes = batch.n_id
        seeds += nodes[: batch.batch_size].tolist()
        np.testing.assert_array_equal(batch.x, rows["features"][nodes])
        np.testing.assert_array_equal(batch.y, rows["labels"][nodes])
        np.testing.assert_array_equal(batch.train_mask, mask[nodes])
        found = list(zip(*nodes[batch.edge_index].tolist(), strict=True))
        assert found == [ends[edge] for edge in batch.e_id.tolist()]
        assert (len(nodes) == len(nodes.unique())) or not merged
        assert sum(batch.num_sampled_nodes) == len(nodes)
        assert sum(batch.num_sampled_edges) == batch.edge_index.shape[1]
    assert seeds == list(range(300))


def test_the_node_loader_trains_a_model(parts):
    torch.manual_seed(0)
    model = GraphSAGE(6, 8, num_layers=2, out_channels=3)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    known = torch.from_numpy(np.flatnonzero(attributed()[1]["labels"] >= 0))
    means = []
    for _ in range(10):
        losses = []
        for batch in node_loader(parts, input_nodes=known, shuffle=True):
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index)[: batch.batch_size]
            loss = torch.nn.functional.cross_entropy(out, batch.y[: batch.batch_size])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        means.append(np.mean(losses))
    assert means[-1] < 0.95 * means[0]


def test_the_same_calls_draw_the_same_and_later_ones_anew(parts):
    def nodes(loader):
        return [batch.n_id.tolist() for batch in loader]

    loader = node_loader(parts)
    first, second = nodes(loader), nodes(loader)
    again = node_loader(parts)
    assert (nodes(again), nodes(again)) == (first, second)
    assert first != second
    assert nodes(node_loader(parts, seed=1)) != first
    weights = np.random.default_rng(0).random(2000)
    assert nodes(node_loader(parts, sampling="weighted", weights=weights)) != first


def test_stores(parts):
    _, rows = attributed(dtype=np.float32)
    features, edges = fp.pyg.feature_store(parts), fp.pyg.graph_store(parts)
    names = ["x", "y", "train_mask", "val_mask", "test_mask"]
    assert [attr.attr_name for attr in features.get_all_tensor_attrs()] == names
    for store in (features, pickle.loads(pickle.dumps(features))):
        np.testing.assert_array_equal(store[None, "x", None], rows["features"])
        np.testing.assert_array_equal(store[None, "x", torch.tensor([7, 3])], rows["features"][[7, 3]])
        np.testing.assert_array_equal(store[None, "x", slice(2, 9, 3)], rows["features"][2:9:3])
        assert store.get_tensor_size(group_name=None, attr_name="x", index=None) == (300, 6)
    assert features.get_tensor(group_name=None, attr_name="z", index=None) is None
    assert features.get_tensor_size(group_name=None, attr_name="z") is None
    with pytest.raises(fp.FastpartError, match="read-only"):
        features[None, "x", None] = torch.zeros(300, 6)
    assert [attr.layout.value for attr in edges.get_all_edge_attrs()] == ["coo", "csc"]
    sources, targets = edges.get_edge_index(None, "coo", size=(300, 300), is_sorted=True)
    expected, *_ = edges_of(parts)
    assert sorted(zip(sources.tolist(), targets.tolist(), strict=True)) == sorted(
        zip(*expected.tolist(), strict=True)
    )
    assert targets.tolist() == sorted(targets.tolist())
    indices, indptr = edges.get_edge_index(None, "csc", size=(300, 300), is_sorted=True)
    assert torch.equal(indices, sources)
    assert torch.equal(torch.bincount(targets, minlength=300), indptr.diff())


def test_edges_are_those_of_the_records(tmp_path):
    records = [(0, 1), (1, 2), (2, 0), (3, 3), (4, 0)]
    graph = fp.open_graph(np.array(records), num_vertices=6)
    fp.VertexPartition([2, 0, 0, 2, 0, 2], 3).save(tmp_path / "parts", graph=graph)
    edges = fp.pyg.graph_store(fp.open_partition(tmp_path / "parts"))
    sources, targets = edges.get_edge_index(None, "coo", size=(6, 6), is_sorted=True)
    given = oracles.in_edges(6, records, "undirected")
    expected = [(u, v) for v in range(6) for u, _ in given[v]]
    assert list(zip(sources.tolist(), targets.tolist(), strict=True)) == expected


def test_refusals(parts, tmp_path):
    for make in (fp.pyg.feature_store, fp.pyg.graph_store, lambda p: fp.pyg.sampler(p, [2])):
        with pytest.raises(TypeError, match="expected a VertexPartition"):
            make("parts")
        with pytest.raises(fp.FastpartError, match="in memory"):
            make(fp.VertexPartition([0, 1], 2))
    with pytest.raises(fp.errors.ParameterError, match="fanouts: -3"):
        fp.pyg.sampler(parts, [-3])
    with pytest.raises(fp.errors.ParameterError, match="sampling: unknown value"):
        fp.pyg.sampler(parts, [3], sampling="all")
    with pytest.raises(fp.errors.ParameterError, match="times of seeds"):
        next(iter(node_loader(parts, input_time=torch.arange(300))))
    with pytest.raises(fp.errors.ParameterError, match="no part holds the vertex 300"):
        next(iter(node_loader(parts, input_nodes=torch.tensor([300]))))
