"""Classification of edges: learned, the same for any parts and workers, exact, resumed, predicted."""

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from in_process import in_process

torch = pytest.importorskip("torch")

from fastpart.train.method_options import EdgeOptions  # noqa: E402
from fastpart.train.methods.edges.dataset import LabelledEdges  # noqa: E402
from fastpart.train.methods.edges.worker import Edges  # noqa: E402

N, M, WIDTH = 150, 900, 4
QUICK = {"hidden": 16, "threads": 1, "epochs": 3, "batch_size": 128, "fanouts": [4, 3]}

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.timeout(300),
]


class Graph:
    """Records with loops and parallel ones, whose labels follow from the features of both ends."""

    def __init__(self, directedness="undirected"):
        random = np.random.default_rng(0)
        records = random.integers(0, N, (M, 2))
        records[-60:-30] = records[:30]
        records[-30:] = records[30:60, ::-1]
        records[60:70, 1] = records[60:70, 0]
        self.records, self.directedness = records, directedness
        self.x = random.standard_normal((N, WIDTH)).astype(np.float32)
        u, v = records.T
        self.y = 2 * (self.x[u, 0] > 0) + (self.x[v, 1] > 0)
        self.y[::50] = -1
        fold = random.integers(0, 10, M)
        self.splits = {"train": fold < 7, "val": fold == 7, "test": np.flatnonzero(fold > 7)}

    def saved(self, folder, k=3, assignment=None, **more):
        given = {
            "features": self.x,
            "edge_labels": self.y,
            "edge_label_splits": self.splits,
            "graph": fp.open_graph(self.records, num_vertices=N, directedness=self.directedness),
            **more,
        }
        parts = np.arange(N) * 7 % k if assignment is None else assignment
        fp.VertexPartition(parts, k).save(folder, **given)
        return folder


@pytest.fixture(scope="module")
def graph():
    return Graph()


@pytest.fixture(scope="module")
def parts(graph, tmp_path_factory):
    features = np.random.default_rng(1).standard_normal((M, 2)).astype(np.float32)
    return graph.saved(tmp_path_factory.mktemp("edges") / "parts", edge_features=features)


@pytest.fixture
def alone():
    """Train in this process."""
    return in_process(fp.train.edges)


@pytest.mark.parametrize("directedness", ["undirected", "directed", "symmetric"])
def test_labels_that_follow_from_the_ends_are_learned(alone, tmp_path, directedness):
    folder = Graph(directedness).saved(tmp_path / "parts")
    trained = alone(folder, **{**QUICK, "hidden": 32, "epochs": 25, "dropout": 0})
    assert trained.summary["test_accuracy"] > 0.93
    assert trained.summary["val_f1"] == trained.summary["val_accuracy"] > 0.93


def test_what_only_features_of_edges_tell_is_learned(alone, graph, tmp_path):
    attributes = np.random.default_rng(2).standard_normal((M, 3)).astype(np.float32)
    told = (attributes[:, 1] > 0).astype(int)
    folder = graph.saved(tmp_path / "parts", edge_features=attributes, edge_labels=told)
    trained = alone(folder, **{**QUICK, "epochs": 20, "dropout": 0})
    assert trained.summary["test_accuracy"] > 0.95


@pytest.mark.parametrize(
    "given",
    [{"dropout": 0.3}, {"model": "gatv2", "fanouts": [-1, 2]}, {"model": "gcn", "edge_labels": "values"}],
)
def test_parts_and_workers_do_not_change_the_losses(alone, graph, tmp_path, given):
    given = {**QUICK, **given}
    more = {"edge_features": np.random.default_rng(1).standard_normal((M, 2)).astype(np.float32)}
    if given.pop("edge_labels", None):
        more["edge_labels"] = graph.x[graph.records[:, 0], 0] * graph.x[graph.records[:, 1], 1]
    one = alone(graph.saved(tmp_path / "one", 1, **more), **given)
    three = fp.train.edges(graph.saved(tmp_path / "three", 3, **more), workers=2, **given)
    uneven = np.where(np.arange(N) < 140, 0, 1)
    two = alone(graph.saved(tmp_path / "two", 2, uneven, **more), **given)
    for other in (two, three):
        np.testing.assert_allclose(other.history["loss"], one.history["loss"], rtol=1e-5)
        scores = [name for name in one.summary if name.startswith("test_")]
        assert scores == (
            ["test_rmse", "test_mae"] if "edge_labels" in more else ["test_accuracy", "test_f1"]
        )
        for name in scores:
            assert other.summary[name] == pytest.approx(one.summary[name], rel=1e-3)


def dense(graph, network, attributes=None):
    """Return the outputs of a GraphSAGE encoder and the head for all records, from dense matrices."""
    adjacency = torch.zeros(N, N)
    for u, v in graph.records.tolist():
        adjacency[v, u] += 1
        if u != v:
            adjacency[u, v] += 1
    mean = adjacency / adjacency.sum(1, keepdim=True).clamp(min=1)
    h = torch.from_numpy(graph.x)
    layers = network.encoder.layers
    for index, layer in enumerate(layers):
        h = layer.fc_self(h) + layer.fc_neigh(mean @ h)
        h = h if index == len(layers) - 1 else h.relu()
    sources, targets = (h[torch.from_numpy(ends)] for ends in graph.records.T)
    rows = [sources, targets, *([] if attributes is None else [torch.from_numpy(attributes)])]
    return network.head.out(network.head.hidden(torch.cat(rows, 1)).relu()).detach()


def test_predictions_and_scores_are_those_of_dense_matrices(alone, graph, tmp_path):
    attributes = np.random.default_rng(1).standard_normal((M, 2)).astype(np.float32)
    folder = graph.saved(tmp_path / "parts", edge_features=attributes)
    trained = alone(folder, **QUICK, metrics={"share": lambda y, t: (y.argmax(1) == t).float()})
    logits = dense(graph, trained.network(), attributes)
    np.testing.assert_allclose(trained.predict(folder, what="logits"), logits, atol=1e-4)
    classes = trained.predict(folder, out=tmp_path / "classes.npy")
    np.testing.assert_array_equal(classes, logits.argmax(1))
    np.testing.assert_array_equal(np.load(tmp_path / "classes.npy"), classes)
    np.testing.assert_array_equal(trained.predict(folder, edges=[7, 3]), classes[[7, 3]])
    known = np.isin(np.arange(M), graph.splits["test"]) & (graph.y >= 0)
    accuracy = (classes == graph.y)[known].mean()
    assert trained.summary["test_accuracy"] == trained.summary["test_share"] == pytest.approx(accuracy)


def test_labels_of_several_classes_and_numbers(alone, graph, tmp_path):
    u, v = graph.records.T
    several = np.stack([graph.x[u, 0] > 0, graph.x[v, 1] > 0, graph.x[u, 2] > graph.x[v, 2]], 1)
    trained = alone(graph.saved(tmp_path / "several", edge_labels=several), **QUICK)
    predicted = trained.predict(tmp_path / "several")
    assert predicted.shape == (M, 3)
    assert predicted.dtype == np.uint8
    numbers = graph.x[u, 0] + graph.x[v, 1]
    numbers[::7] = np.nan
    trained = alone(graph.saved(tmp_path / "numbers", edge_labels=numbers), **{**QUICK, "epochs": 20})
    assert trained.summary["test_rmse"] < 0.7 * np.nanstd(numbers)
    assert trained.predict(tmp_path / "numbers").dtype == np.float32


def test_each_record_counts_once_and_a_batch_leaves_out_its_edges(graph, tmp_path):
    dataset = LabelledEdges(graph.saved(tmp_path / "parts"))
    expected = np.flatnonzero(graph.splits["train"] & (graph.y >= 0))
    np.testing.assert_array_equal(dataset.supervision.pairs, graph.records[expected])
    np.testing.assert_array_equal(dataset.supervision.labels, graph.y[expected])
    assert dataset.num_train == len(expected)
    assert dataset.num_val == np.count_nonzero(graph.splits["val"] & (graph.y >= 0))
    steps = Edges(dataset, EdgeOptions.checked({**QUICK, "fanouts": [-1, -1]}), 1 << 20, False)
    ids = dataset.topology.ids_of
    seen = 0
    for step in steps.epoch(0):
        pairs = ids(step.inputs[""])[step.ends.numpy()].T
        taken = {frozenset(pair) for pair in pairs.tolist()}
        rows = step.graphs[-1]
        names = ids(step.inputs[""])
        targets = np.repeat(np.arange(len(rows.indptr) - 1), np.diff(rows.indptr))
        edges = zip(names[np.asarray(rows.indices)].tolist(), names[targets].tolist(), strict=True)
        assert not taken & {frozenset(edge) for edge in edges}
        seen += len(step.y)
    assert seen == len(expected)
    steps.close()


def test_a_resumed_training_is_that_of_one_go(alone, parts, tmp_path):
    whole = alone(parts, **QUICK, out=tmp_path / "whole")
    alone(parts, **{**QUICK, "epochs": 1}, out=tmp_path / "run")
    resumed = alone(parts, **QUICK, out=tmp_path / "run", resume=True)
    assert resumed.history["loss"].to_list() == whole.history["loss"].to_list()
    opened = fp.train.open(tmp_path / "run")
    assert type(opened) is fp.train.TrainedEdges
    assert opened.summary == resumed.summary
    np.testing.assert_array_equal(opened.predict(parts), whole.predict(parts))


def test_other_labels_are_another_training(alone, graph, parts, tmp_path):
    folder = graph.saved(tmp_path / "parts")
    alone(folder, **QUICK, out=tmp_path / "run")
    other = graph.saved(tmp_path / "other", edge_labels=graph.y[::-1].copy())
    with pytest.raises(fp.errors.ParameterError, match="trained on other labels of edges"):
        alone(other, **QUICK, out=tmp_path / "run", resume=True)
    with pytest.raises(
        fp.errors.ParameterError, match="has 2 features of edges, but the model was trained on 0"
    ):
        fp.train.open(tmp_path / "run").predict(parts)


class Mean(torch.nn.Module):
    """A model of a user with rows of a width."""

    def __init__(self, width):
        super().__init__()
        self.layer = torch.nn.Linear(WIDTH, width)

    def forward(self, x, edge_index):
        """Return rows of a user's model."""
        return self.layer(x)


def test_a_model_of_a_user_returns_rows_as_wide_as_hidden_layers(alone, graph, tmp_path):
    folder = graph.saved(tmp_path / "parts")
    trained = alone(
        folder, model=Mean(16), **QUICK, loss=torch.nn.CrossEntropyLoss(torch.tensor([1.0, 2, 1, 1]))
    )
    assert trained.predict(folder).shape == (M,)
    with pytest.raises(fp.errors.ParameterError, match="there are 16 outputs to learn"):
        fp.train.edges(folder, model=Mean(3), workers=1, **QUICK)


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("features", "holds no features. Save the partition with p.save"),
        ("edge_labels", "holds no edge_labels"),
        ("edge_label_splits", "holds no edge_label_splits"),
    ],
)
def test_directories_without_data_are_refused(graph, tmp_path, missing, told):
    with pytest.raises(fp.errors.ParameterError, match=told):
        fp.train.edges(graph.saved(tmp_path / "parts", **{missing: None}))


def test_what_does_not_fit_is_refused(graph, parts, alone, tmp_path):
    with pytest.raises(fp.errors.ParameterError, match="no labelled record to train on"):
        fp.train.edges(graph.saved(tmp_path / "none", edge_labels=np.full(M, -1)))
    with pytest.raises(fp.errors.ParameterError, match="model: 'clustergcn' trains on sampled graphs"):
        fp.train.edges(parts, model="clustergcn")
    with pytest.raises(TypeError, match="plan"):
        fp.train.edges(parts, plan=tmp_path / "plan")
    trained = alone(parts, **{**QUICK, "epochs": 1})
    with pytest.raises(fp.errors.ParameterError, match="vertices: the model predicts edges"):
        trained.predict(parts, vertices=[1])
    with pytest.raises(fp.errors.ParameterError, match=f"edges: {M} is not between 0 and {M - 1}"):
        trained.predict(parts, edges=[M])


def test_the_command_line_trains_and_predicts(parts, tmp_path, capsys):
    words = (
        f"train edges {parts} --epochs 1 --batch-size 300 --workers 1 --predictions {tmp_path}/classes.npy"
    )
    assert main([*words.split(), "-o", str(tmp_path / "run")]) == 0
    assert "test_accuracy" in capsys.readouterr().out
    np.testing.assert_array_equal(
        np.load(tmp_path / "classes.npy"), fp.train.open(tmp_path / "run").predict(parts)
    )
