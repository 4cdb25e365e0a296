"""Features of in-edges: in batches, in models, and the same training for any parts, workers and methods."""

import numpy as np
import pytest
from hypothesis import given, settings

import fastpart as fp
from strategies import edge_lists

torch = pytest.importorskip("torch")

from fastpart.core.cache_size import CacheSize  # noqa: E402
from fastpart.core.options import RunOptions  # noqa: E402
from fastpart.loading import Sample  # noqa: E402
from fastpart.loading.edge_rows import cached_edge_rows_of  # noqa: E402
from fastpart.measures.accesses import Epoch  # noqa: E402
from fastpart.train.data.dataset import Dataset  # noqa: E402
from fastpart.train.graphs.rows import Rows  # noqa: E402
from fastpart.train.inference.inference import Inference  # noqa: E402
from fastpart.train.methods.sdt import sizing  # noqa: E402
from fastpart.train.models import build  # noqa: E402
from fastpart.train.models.scores import Task  # noqa: E402
from fastpart.train.options import Options  # noqa: E402
from fastpart.train.runs.run_folder import RunFolder  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

N, M, WIDTH = 200, 900, 3
MODELS = ("gatv2", "transformer", "gine")


def graph_of(directedness="undirected"):
    random = np.random.default_rng(0)
    return fp.open_graph(random.integers(0, N, (M, 2)), num_vertices=N, directedness=directedness)


def saved(folder, k, graph=None, edge_features=None, **more):
    """Save parts with features of edges, by which alone the classes can be told."""
    random = np.random.default_rng(1)
    labels = random.integers(0, 3, N)
    given = {
        "features": random.standard_normal((N, 4)).astype(np.float32),
        "edge_features": random.standard_normal((M, WIDTH)).astype(np.float32),
        "labels": labels,
        "splits": {"train": np.arange(100), "val": np.arange(100, 150), "test": np.arange(150, N)},
        **more,
    }
    if edge_features is not None:
        given["edge_features"] = edge_features
    fp.VertexPartition(random.integers(0, k, N), k).save(folder, graph=graph or graph_of(), **given)
    return fp.open_partition(folder)


# Batches.


def by_search(stored, batch):
    """Return the features of the in-edges of a batch, each searched among all in-edges of all parts."""
    known = {}
    for part in stored.parts:
        _, targets, ids = part.in_edges()
        owned = np.isin(targets, part.inner)
        rows = part.edge_features
        known |= {
            (t, e): rows[i]
            for i, (t, e) in enumerate(zip(targets.tolist(), ids.tolist(), strict=True))
            if owned[i]
        }
    targets = np.repeat(batch.n_id.numpy()[: len(batch.indptr) - 1], np.diff(batch.indptr))
    found = [known[t, e] for t, e in zip(targets.tolist(), batch.e_id.tolist(), strict=True)]
    return np.array(found).reshape(batch.edge_attr.shape)


@pytest.mark.parametrize("directedness", ["undirected", "directed"])
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("float32", (3,)), ("float16", (16,)), ("float64", ()), ("int8", (2, 2)), ("int64", (1,))],
)
def test_rows_are_those_of_a_search(tmp_path, dtype, shape, directedness):
    rows = np.random.default_rng(2).integers(-100, 100, (M, *shape)).astype(dtype)
    stored = saved(tmp_path / "parts", 3, graph_of(directedness), rows, halo_hops=2)
    ways = ({}, {"ahead": 0}, {"scheduled": True}, {"io": "direct"}, {"sampling": "labor"}, {"merged": True})
    for way in ways:
        for batch in stored.loader(np.arange(N), fanouts=[4, -1], batch_size=64, seed=1, **way):
            assert batch.edge_attr.numpy().dtype == dtype
            np.testing.assert_array_equal(batch.edge_attr.numpy(), rows[batch.e_id.numpy() % M])
            np.testing.assert_array_equal(batch.edge_attr.numpy(), by_search(stored, batch))


def test_ranks_and_their_counts(tmp_path):
    stored = saved(tmp_path / "parts", 4)
    for rank in range(2):
        loader = stored.loader(np.arange(N), fanouts=[3, 3], batch_size=50, rank=rank, world_size=2)
        remote = 0
        own = stored._topology.edge_starts[[2 * rank, 2 * rank + 2]]
        for batch in loader:
            rows = stored._topology.edge_rows_of(
                np.repeat(batch.rows[: len(batch.indptr) - 1], np.diff(batch.indptr)), batch.e_id.numpy(), M
            )
            remote += len(np.unique(rows[(rows < own[0]) | (rows >= own[1])]))
        counts = loader.read_counts()
        assert 0 < counts["remote_edge_rows"] <= remote
        assert counts["remote_edge_bytes"] == 4 * WIDTH * counts["remote_edge_rows"]
        assert counts["edge_rows"] > counts["remote_edge_rows"]


def test_samples_of_a_user_get_them_by_ids(tmp_path):
    stored = saved(tmp_path / "parts", 2)
    rows = np.concatenate([part.edge_features for part in stored.parts])
    made = {}

    def neighbourhood(seeds, epoch, step, ids=True):
        from fastpart import _core

        found = _core.Sampler(stored._topology, [3], edge_ids=True, edge_rows=True).sample(seeds)
        made[step] = rows[found.edge_rows]
        names = ("rows", "indptr", "indices", "num_sampled_nodes", "num_sampled_edges")
        return Sample(**{name: getattr(found, name) for name in names}, e_id=found.e_id if ids else None)

    given = {"fanouts": [3], "batch_size": 64, "scheduled": True}
    for batch in stored.loader(np.arange(N), neighbourhood=neighbourhood, **given):
        np.testing.assert_array_equal(batch.edge_attr.numpy(), made[batch.step])
    for batch in stored.loader(
        np.arange(N), neighbourhood=lambda *of: neighbourhood(*of, ids=False), **given
    ):
        assert batch.edge_attr is None


def test_cached_in_edges_are_those_of_whole_vertices(tmp_path):
    stored = saved(tmp_path / "parts", 4)
    topology, own = stored._topology, np.arange(4) == 1
    epoch = Epoch(np.arange(100, dtype=np.uint32), (4, 3), 50)
    (rows,) = cached_edge_rows_of(stored, own, CacheSize(0.5), epoch, {}).values()
    assert (np.diff(rows) > 0).all()
    first, end = topology.edge_starts[1:3]
    assert not ((first <= rows) & (rows < end)).any()
    assert 0 < len(rows) <= 0.5 * (end - first)
    row = stored.parts[1].stored_type("edge_features")
    size = f"{0.5 * (end - first) * row[0].itemsize * np.prod(row[1], dtype=int) / 1024:.6f}K"
    (of_size,) = cached_edge_rows_of(stored, own, CacheSize.of(size), epoch, {}).values()
    np.testing.assert_array_equal(of_size, rows)
    targets = np.concatenate([part.in_edges()[1] for part in stored.parts])[rows]
    for vertex, count in zip(*np.unique(targets, return_counts=True), strict=True):
        assert count == topology.degrees_of(topology.rows_of(np.array([vertex])))[0]
    (rows,) = cached_edge_rows_of(stored, own, CacheSize(0.5), Epoch(epoch.seeds, (4,), 50), {}).values()
    assert len(rows) == 0


def test_without_them_nothing_is_kept_of_in_edges(tmp_path):
    stored = saved(tmp_path / "parts", 2)
    assert stored.loader(fanouts=[2], edge_ids=False).edge_fetching is None
    assert next(iter(stored.loader(fanouts=[2], edge_ids=False))).edge_attr is None


# Models.

TASK = Task(4, 3, multilabel=False, edge_features=WIDTH)


def network_of(name, task=TASK, **options):
    torch.manual_seed(0)
    network = build(task, Options(model=name, hidden=5, heads=2, dropout=0.0, **options)).double()
    with torch.no_grad():
        for weight in network.parameters():
            weight.copy_(torch.randn(weight.shape, dtype=torch.float64))
    return network.eval()


def rows_of(n, edges):
    order = np.argsort(edges[:, 1], kind="stable")
    edges = edges[order]
    degree = np.bincount(edges[:, 1], minlength=n)
    attr = torch.randn(
        len(edges), WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(len(edges))
    )
    indptr = np.concatenate(([0], np.cumsum(degree)))
    graph = Rows(indptr, edges[:, 0].astype(np.int32), torch.from_numpy(degree), edge_attr=attr)
    x = torch.randn(n, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(n))
    return graph, x, torch.from_numpy(edges.T.astype(np.int64).copy()), attr


def of_pyg(name, layer, width, index):
    """Return the layer of PyG with the weights of ours, and what it returns beyond ours."""
    nn = pytest.importorskip("torch_geometric.nn")
    last, heads, out = index == 1, *layer.shape
    if name == "gatv2":
        theirs = nn.GATv2Conv(width, out, heads, concat=not last, edge_dim=WIDTH).double()  # its bias is 0
        pairs = (theirs.lin_l, layer.fc_src), (theirs.lin_r, layer.fc_dst), (theirs.lin_edge, layer.fc_edge)
        theirs.att.data.copy_(layer.attn)
    else:
        theirs = nn.TransformerConv(width, out, heads, concat=not last, edge_dim=WIDTH).double()
        names = {
            "lin_query": "query",
            "lin_key": "key",
            "lin_value": "value",
            "lin_edge": "edge",
            "lin_skip": "skip",
        }
        pairs = [(getattr(theirs, one), getattr(layer, other)) for one, other in names.items()]
    for one, other in pairs:
        one.load_state_dict(other.state_dict())
    return theirs.eval()


@settings(max_examples=10, deadline=None)
@given(graph=edge_lists(8, 20))
@pytest.mark.parametrize("name", ["gatv2", "transformer"])
def test_attention_is_that_of_pyg(name, graph):
    n, edges = graph
    rows, x, edge_index, attr = rows_of(n, np.asarray(edges, np.int64).reshape(-1, 2))
    if (edge_index[0] == edge_index[1]).any():
        return  # PyG puts its loops in the place of those of the graph
    network = network_of(name)
    with torch.no_grad():
        for index, layer in enumerate(network.layers):
            theirs = of_pyg(name, layer, x.shape[1], index)(x, edge_index, attr)
            torch.testing.assert_close(layer(rows, x), theirs)
            x = network.between(theirs, rows)


@settings(max_examples=15, deadline=None)
@given(graph=edge_lists(8, 20))
def test_gine_adds_up_what_each_edge_says(graph):
    n, edges = graph
    rows, x, edge_index, attr = rows_of(n, np.asarray(edges, np.int64).reshape(-1, 2))
    layer = network_of("gine").layers[0]
    with torch.no_grad():
        sums = torch.zeros_like(x)
        for (source, target), of_edge in zip(edge_index.T.tolist(), attr, strict=True):
            sums[target] += torch.relu(x[source] + layer.edge(of_edge))
        expected = layer.outer(torch.relu(layer.norm(layer.inner((1 + layer.epsilon) * x + sums))))
        torch.testing.assert_close(layer(rows, x), expected)


@pytest.mark.parametrize("name", MODELS)
def test_weights_without_features_of_edges_are_as_before(name):
    plain = Task(4, 3, multilabel=False)
    options = Options(model=name, hidden=5, heads=2)
    torch.manual_seed(3)
    with_edges = build(TASK, options)
    torch.manual_seed(3)
    without = build(plain, options)
    assert not any("edge" in name for name in without.state_dict())
    if name == "gatv2":
        first = {key: value for key, value in with_edges.layers[0].state_dict().items() if "edge" not in key}
        assert all(torch.equal(value, without.layers[0].state_dict()[key]) for key, value in first.items())
    if name == "gine":
        torch.manual_seed(3)
        gin = build(plain, Options(model="gin", hidden=5, heads=2))
        assert all(map(torch.equal, gin.state_dict().values(), without.state_dict().values()))


@pytest.mark.parametrize("name", MODELS)
def test_inference_layer_by_layer_is_that_of_the_whole_graph(tmp_path, name, monkeypatch):
    saved(tmp_path / "parts", 3)
    dataset = Dataset(tmp_path / "parts")
    network = network_of(name, dataset.task)
    whole = dataset.whole()
    with torch.no_grad():
        expected = network([whole.graph] * 2, whole.features.double())
    monkeypatch.setattr("fastpart.train.inference.inference.EDGES", 40)  # many blocks
    inference = Inference(dataset, [0, 1, 2], tmp_path, 2)
    for part, vertices, rows in inference.outputs(network):
        ids = dataset.partition.parts[part].inner[vertices]
        torch.testing.assert_close(rows, expected[torch.from_numpy(np.array(ids))], rtol=1e-5, atol=1e-4)


# Training.

QUICK = {
    "epochs": 2,
    "hidden": 6,
    "fanouts": (4, 3),
    "batch_size": 40,
    "precision": "float64",
    "dropout": 0.5,
}


def losses(method, folder, **given):
    return getattr(fp.train, method)(folder, **{**QUICK, **given}).history["loss"].to_numpy()


@pytest.fixture(scope="module")
def directories(tmp_path_factory):
    folder = tmp_path_factory.mktemp("edges")
    for k in (1, 2, 4):
        saved(folder / f"{k}", k)
    return folder


@pytest.mark.parametrize("model", MODELS)
def test_losses_are_the_same_for_any_parts_workers_and_methods(directories, model):
    expected = losses("sampled", directories / "1", model=model)
    ways = [(4, "sampled", {"workers": 2})]
    if model == "gatv2":
        ways += [(2, "bytegnn", {}), (2, "sampled", {"ahead": 0})]
    for k, method, more in ways:
        found = losses(method, directories / f"{k}", model=model, **more)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("order", ["global", "parts"])
def test_batch_workers_send_them(directories, order):
    given = {"model": "gatv2", "dropout": 0.0, "batch_workers": 2, "compute_workers": 2, "order": order}
    found = losses("armada", directories / "4", **given)
    if order == "global":
        expected = losses("sampled", directories / "1", model="gatv2", dropout=0.0)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    else:
        assert np.isfinite(found).all()


def test_other_features_of_edges_are_other_losses(directories, tmp_path):
    zeros = np.zeros((M, WIDTH), np.float32)
    saved(tmp_path / "zeros", 2, edge_features=zeros)
    for method in ("sampled", "sdt"):
        given = {"epochs": 1, "model": "gine", "dropout": 0.0}
        pair = [losses(method, folder, **given)[0] for folder in (directories / "2", tmp_path / "zeros")]
        assert pair[0] != pytest.approx(pair[1], rel=1e-4)


def test_whole_batches_are_those_of_full(directories):
    """One step an epoch over whole neighbourhoods is full-batch training, whatever trains it."""
    given = {"model": "transformer", "dropout": 0.0, "fanouts": (-1, -1), "batch_size": None}
    expected = losses("full", directories / "1", **given)
    np.testing.assert_allclose(losses("sampled", directories / "4", **given), expected, rtol=1e-6)
    np.testing.assert_allclose(losses("full", directories / "4", **given), expected, rtol=1e-6)


def test_regrouped_parts_have_them(directories, tmp_path):
    again = sizing.regrouped(Dataset(directories / "4"), 3, RunFolder(tmp_path), RunOptions())
    by_record = np.empty((M, WIDTH), np.float32)
    for part in fp.open_partition(directories / "1").parts:
        by_record[part.edge_ids % M] = part.edge_features
    for part in again.partition.parts:
        np.testing.assert_array_equal(part.edge_features, by_record[part.edge_ids % M])


def test_a_network_of_a_user_is_tried_with_them(directories):
    class Mine(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.edges = torch.nn.Linear(4, 3), torch.nn.Linear(WIDTH, 3)

        def forward(self, x, edge_index, edge_attr):
            h = torch.zeros(len(x), 3).index_add(0, edge_index[1], self.edges(edge_attr))
            return self.linear(x) + h

    found = losses("sampled", directories / "2", model=Mine(), precision="float32")
    assert np.isfinite(found).all()


def test_links_take_them(tmp_path):
    graph = graph_of()
    splits = fp.split_edges(graph, seed=0)
    rows = np.random.default_rng(4).standard_normal((splits.graph.num_edges, 2)).astype(np.float16)
    features = np.random.default_rng(5).standard_normal((N, 4)).astype(np.float32)
    found = []
    for k, edge_features in ((1, rows), (3, rows), (1, 0 * rows)):
        folder = tmp_path / f"{len(found)}"
        fp.VertexPartition(np.arange(N) % k, k).save(
            folder, graph=splits.graph, features=features, edge_features=edge_features, edge_splits=splits
        )
        given = {
            "epochs": 2,
            "hidden": 6,
            "fanouts": (4, 3),
            "batch_size": 200,
            "model": "gatv2",
            "dropout": 0.0,
        }
        found.append(fp.train.links(folder, workers=1, **given).history)
    np.testing.assert_allclose(found[0]["loss"], found[1]["loss"], rtol=1e-4)
    np.testing.assert_allclose(found[0]["val_mrr"], found[1]["val_mrr"], rtol=1e-3)
    assert found[0]["loss"][0] != pytest.approx(found[2]["loss"][0], rel=1e-4)


def test_predictions_need_them(directories, tmp_path):
    trained = fp.train.sampled(directories / "2", **QUICK, model="gatv2", out=tmp_path / "out")
    logits = trained.predict(directories / "4", what="logits")
    np.testing.assert_allclose(
        logits, trained.predict(directories / "1", what="logits"), rtol=1e-5, atol=1e-6
    )
    saved(tmp_path / "without", 2, edge_features=np.zeros((M, WIDTH + 1), np.float32))
    with pytest.raises(
        fp.errors.ParameterError, match="has 4 features of edges, but the model was trained on 3"
    ):
        trained.predict(tmp_path / "without")


def test_methods_over_parts_of_the_edges_leave_them_out(tmp_path):
    random = np.random.default_rng(1)
    given = {
        "features": random.standard_normal((N, 4)).astype(np.float32),
        "labels": random.integers(0, 3, N),
        "splits": {"train": np.arange(100), "val": np.arange(100, 150)},
    }
    graph, losses = graph_of(), []
    for name, more in (("with", {"edge_features": np.ones((M, 2), np.float32)}), ("without", {})):
        fp.algorithms.hdrf(graph, 2).save(tmp_path / name, graph=graph, **given, **more)
        trained = fp.train.distgnn(tmp_path / name, epochs=1, hidden=6, model="gatv2", dropout=0.0)
        losses.append(trained.history["loss"][0])
    assert losses[0] == losses[1]


def test_layers_without_them_say_so():
    graph = Rows(np.array([0, 1]), np.array([0], np.int32), torch.ones(1, dtype=torch.int64))
    with pytest.raises(fp.errors.ParameterError, match="it takes features of edges, which are not here"):
        network_of("gine")([graph] * 2, torch.zeros(1, 4, dtype=torch.float64))
