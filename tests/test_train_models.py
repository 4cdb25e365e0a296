"""What the models compute: against dense matrices, over blocks and parts, and on graphs with nothing in them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpart as fp
from strategies import edge_lists
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import Dataset  # noqa: E402
from fastpart.train.graphs.rows import Rows  # noqa: E402
from fastpart.train.learning.batches import _neighbours, batches  # noqa: E402
from fastpart.train.learning.local_graph import LocalGraph  # noqa: E402
from fastpart.train.models import MODELS, build, sampling_of  # noqa: E402
from fastpart.train.models.scores import Task  # noqa: E402
from fastpart.train.options import Options  # noqa: E402

TASK = Task(features=3, classes=4, multilabel=False)

pytestmark = pytest.mark.usefixtures("one_thread")


def network_of(name, task=TASK, dtype=torch.float64, **options):
    torch.manual_seed(0)
    network = build(task, Options(model=name, **{"hidden": 5, "heads": 2, "dropout": 0.0, **options})).to(
        dtype
    )
    for parameter in network.parameters():  # biases begin with 0
        torch.nn.init.normal_(parameter)
    return network.eval()


def graph_of(n, edges):
    """Return a graph with the edges u -> v, and the matrix of how many lead to v (row) from u (column)."""
    edges = edges[np.argsort(edges[:, 1], kind="stable")]
    degree = np.bincount(edges[:, 1], minlength=n)
    indptr = np.concatenate(([0], np.cumsum(degree)))
    graph = Rows(indptr, edges[:, 0].astype(np.int32), torch.from_numpy(degree))
    matrix = np.zeros((n, n))
    np.add.at(matrix, (edges[:, 1], edges[:, 0]), 1)
    return graph, matrix


def local_of(n, edges):
    graph, _ = graph_of(n, edges)
    features = torch.randn(n, TASK.features, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    labels = torch.zeros(n, dtype=torch.int64)
    return LocalGraph(graph, features, labels, {"train": torch.arange(n)}, np.arange(n), n)


# Oracles: what a layer makes of rows x, by dense matrices; `a` is the matrix of the edges, `w` the layer's weights.


def relu(x):
    return np.maximum(x, 0)


def symmetric(a):
    root = (a.sum(1) + 1) ** -0.5
    return root[:, None] * (a + np.eye(len(a))) * root


def graphsage(a, x, w, last):
    mean = a / np.maximum(a.sum(1), 1)[:, None]
    return x @ w["fc_self.weight"].T + w["fc_self.bias"] + mean @ x @ w["fc_neigh.weight"].T


def graphsage_gcn(a, x, w, last):
    looped = a + np.eye(len(a))
    return looped / looped.sum(1, keepdims=True) @ x @ w["fc_neigh.weight"].T + w["bias"]


def ngnn(a, x, w, last):
    inside = {name.removeprefix("convolution."): value for name, value in w.items()}
    return relu(graphsage(a, x, inside, last)) @ w["linear.weight"].T + w["linear.bias"]


def gin(a, x, w, last):
    h = ((1 + w["epsilon"]) * x + a @ x) @ w["inner.weight"].T + w["inner.bias"]
    spread = np.sqrt(h.var(1, keepdims=True) + 1e-5)
    h = (h - h.mean(1, keepdims=True)) / spread * w["norm.weight"] + w["norm.bias"]
    return relu(h) @ w["outer.weight"].T + w["outer.bias"]


def gcn(a, x, w, last):
    return symmetric(a) @ x @ w["linear.weight"].T + w["bias"]


def sgc(a, x, w, last):
    return gcn(a, x, w, last) if last else symmetric(a) @ x


def attention(a, values, scores, last):
    """Weigh the values (source, head, width) by the softmax of the scores (destination, source, head)."""
    weights = (a + np.eye(len(a)))[:, :, None] * np.exp(scores)
    h = np.einsum("vuh,uho->vho", weights / weights.sum(1, keepdims=True), values)
    return h.mean(1) if last else h.reshape(len(a), h.shape[1] * h.shape[2])


def leaky(x):
    return np.where(x > 0, x, 0.2 * x)


def gat(a, x, w, last):
    values = (x @ w["fc.weight"].T).reshape(len(a), *w["attn_l"].shape[1:])
    left, right = ((values * w[f"attn_{side}"]).sum(-1) for side in "lr")
    h = attention(a, values, leaky(left[None] + right[:, None]), last)
    bias = w["bias"].reshape(w["attn_l"].shape[1:])
    return h + (bias.mean(0) if last else bias.reshape(-1))


def gatv2(a, x, w, last):
    left, right = (
        (x @ w[f"fc_{end}.weight"].T + w[f"fc_{end}.bias"]).reshape(len(a), *w["attn"].shape[1:])
        for end in ("src", "dst")
    )
    scores = (leaky(left[None] + right[:, None]) * w["attn"]).sum(-1)
    return attention(a, left, scores, last)


def transformer(a, x, w, last):
    query, key, value, skip = (
        x @ w[f"{name}.weight"].T + w[f"{name}.bias"] for name in ("query", "key", "value", "skip")
    )
    width = query.shape[1] // 2  # of each head
    query, key, value = (each.reshape(len(a), 2, width) for each in (query, key, value))
    scores = np.einsum("vho,uho->vuh", query, key) / np.sqrt(width)
    scores = a[:, :, None] * np.exp(scores - scores.max(1, keepdims=True, initial=0))
    total = scores.sum(1, keepdims=True)
    h = np.einsum("vuh,uho->vho", scores / np.where(total > 0, total, 1), value)
    return (h.mean(1) if last else h.reshape(len(a), 2 * width)) + skip


def elu(x):
    return np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)


ORACLES = {
    "graphsage": (graphsage, relu),
    "clustergcn": (graphsage, relu),
    "graphsaint": (graphsage, relu),
    "graphsage-gcn": (graphsage_gcn, relu),
    "gin": (gin, relu),
    "gine": (gin, relu),
    "ngnn": (ngnn, relu),
    "gcn": (gcn, relu),
    "sgc": (sgc, lambda x: x),
    "gat": (gat, elu),
    "gatv2": (gatv2, elu),
    "transformer": (transformer, relu),
}


def oracle(name, network, a, x):
    layer, between = ORACLES[name]
    for index, module in enumerate(network.layers):
        weights = {key: value.numpy() for key, value in module.state_dict().items()}
        last = index == len(network.layers) - 1
        x = layer(a, x, weights, last)
        x = x if last else between(x)
    return x


def test_every_model_has_an_oracle():
    assert ORACLES.keys() == MODELS.keys()


@settings(max_examples=15)
@given(graph=edge_lists(8, 20), layers=st.integers(1, 3))
@pytest.mark.parametrize("name", MODELS)
def test_forward_is_that_of_dense_matrices(name, graph, layers):
    local = local_of(*graph)
    network = network_of(name, layers=layers)
    with torch.no_grad():
        logits = network([local.graph] * layers, local.features).numpy()
    _, matrix = graph_of(*graph)
    np.testing.assert_allclose(
        logits, oracle(name, network, matrix, local.features.numpy()), rtol=1e-9, atol=1e-9
    )


@settings(max_examples=15)
@given(graph=edge_lists(8, 20), layers=st.integers(1, 3), size=st.integers(1, 4))
@pytest.mark.parametrize("name", MODELS)
def test_blocks_with_all_neighbours_are_as_the_whole_graph(name, graph, layers, size):
    local = local_of(*graph)
    network = network_of(name, layers=layers)
    options = Options(model=name, layers=layers, batch_size=size, fanouts=(-1,) * layers)
    seen = []
    with torch.no_grad():
        whole = network([local.graph] * layers, local.features)
        for batch in _neighbours(local.field, options, seed=1) if graph[0] else ():
            logits = network(batch.graphs, local.features[batch.inputs.astype(int)])[batch.rows]
            torch.testing.assert_close(logits, whole[batch.targets.astype(int)], rtol=1e-5, atol=1e-5)
            seen += batch.targets.tolist()
    assert sorted(seen) == list(range(graph[0]))


@pytest.mark.parametrize("name", MODELS)
def test_parts_layer_by_layer_are_as_the_whole_graph(name, tmp_path):
    dataset = Dataset(planted(tmp_path, k=3, n=60, m=200))
    network = network_of(name, dataset.task, torch.float32)
    whole = dataset.whole()
    parts = [dataset.part(index) for index in range(3)]
    with torch.no_grad():
        below = whole.features
        for index in range(len(network.layers)):
            rows = [
                network.layer(index, part.inner(), below[torch.from_numpy(np.array(part.vertices))])
                for part in parts
            ]
            below = torch.zeros(len(below), rows[0].shape[1])
            for part, logits in zip(parts, rows, strict=True):
                below[torch.from_numpy(np.array(part.vertices[: part.num_inner]))] = logits
        logits = network([whole.graph] * 2, whole.features)
    torch.testing.assert_close(below, logits, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [0, 1, 3])
def test_graphs_without_edges_and_without_vertices(name, n):
    local = local_of(n, np.empty((0, 2), np.int64))
    network = network_of(name)
    logits = network([local.graph] * 2, local.features)
    assert logits.shape == (n, TASK.classes)
    assert torch.isfinite(logits).all()
    network.zero_grad()
    logits.sum().backward()
    assert network([local.graph, local.graph.first(0)], local.features).shape == (0, TASK.classes)


def test_gcn_over_samples_is_right_in_expectation():
    edges = np.array([[u, v] for u in range(6) for v in range(6) if (u + 2 * v) % 3])
    local = local_of(6, edges)
    network = network_of("gcn", layers=1)
    options = Options(model="gcn", layers=1, fanouts=(2,))
    total, samples = torch.zeros(6, TASK.classes, dtype=torch.float64), 1500
    squares = total.clone()
    with torch.no_grad():
        for seed in range(samples):
            (batch,) = batches(local.field, options, seed)
            logits = torch.empty(6, TASK.classes, dtype=torch.float64)
            logits[batch.targets.astype(int)] = network(
                batch.graphs, local.features[batch.inputs.astype(int)]
            )
            total, squares = total + logits, squares + logits**2
        whole = network([local.graph], local.features)
    mean = total / samples
    error = ((squares / samples - mean**2).clamp(min=0) / samples).sqrt()
    assert (error > 0).any()
    assert ((mean - whole).abs() <= 5 * error + 1e-9).all()


# Which models there are.


def test_sampling_of_models():
    kinds = {name: sampling_of(name) for name in MODELS}
    assert kinds.pop("clustergcn") == "cluster"
    assert kinds.pop("graphsaint") == "saint"
    assert set(kinds.values()) == {"neighbour"}
    assert sampling_of(lambda task, options: None) == "neighbour"


@pytest.mark.dgl
@pytest.mark.parametrize("name", ["clustergcn", "graphsaint"])
def test_dgl_refuses_models_with_batches_of_their_own(name):
    pytest.importorskip("dgl")
    with pytest.raises(fp.errors.ParameterError, match=f"model: '{name}' needs sampled graphs"):
        fp.train.distdgl("parts", model=name)


def test_unknown_kinds_of_batches_are_refused():
    class Other(torch.nn.Module):
        sampling = "snowball"

    with pytest.raises(
        fp.errors.ParameterError,
        match=r"unknown sampling 'snowball'\. Valid values are 'neighbour', 'cluster', 'saint'",
    ):
        sampling_of(Other)
