"""Classification of edges of one relation: learned, the same for any parts and workers, exact, resumed, predicted."""

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from in_process import in_process
from random_typed import random_typed_graph, records_of
from typed_graphs import Typed

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from fastpart.train.method_options import EdgeOptions  # noqa: E402
from fastpart.train.methods.edges.dataset import LabelledEdges  # noqa: E402
from fastpart.train.methods.edges.worker import Edges  # noqa: E402
from fastpart.train.models import TypedNetwork  # noqa: E402
from fastpart.train.models.graphsage import SAGE  # noqa: E402

WIDTHS = {"author": 3, "field": 2, "paper": 5}
QUICK = {"hidden": 16, "threads": 1, "epochs": 3, "batch_size": 64, "fanouts": [4, 3], "model": "rgcn"}

pytestmark = [
    pytest.mark.torch,
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.timeout(300),
]


class Papers:
    """Authors, fields and papers. The labels of an edge follow from the features of its ends."""

    def __init__(self, folder):
        self.graph = random_typed_graph(folder / "graph", 3, scale=4)
        random, self.ranges = np.random.default_rng(1), {each.name: each.range for each in self.graph.types}
        self.x = {
            name: random.standard_normal((len(self.ranges[name]), width)).astype(np.float32)
            for name, width in WIDTHS.items()
        }
        self.records = {
            each.name: records_of(self.graph)[each.range.start : each.range.stop]
            for each in self.graph.relations
        }
        self.attributes = {
            name: random.standard_normal((len(of), 2)).astype(np.float32) for name, of in self.records.items()
        }
        self.y, self.splits = {}, {}
        for name, source, target in (("writes", "author", "paper"), ("cites", "paper", "paper")):
            u, v = self.records[name].T
            fold = random.integers(0, 10, len(u))
            self.y[name] = 2 * (self.of(source, u)[:, 0] > 0) + (self.of(target, v)[:, 1] > 0)
            self.y[name][::50] = -1
            self.splits[name] = {"train": fold < 7, "val": fold == 7, "test": np.flatnonzero(fold > 7)}

    def of(self, name, ids):
        """Return the features of vertices of a type."""
        return self.x[name][ids - self.ranges[name].start]

    def saved(self, folder, k=3, relations=("writes",), **more):
        given = {
            "features": self.x,
            "edge_labels": {name: self.y[name] for name in relations},
            "edge_label_splits": {name: self.splits[name] for name in relations},
            **more,
        }
        parts = np.arange(self.graph.num_vertices) * 7 % 11 % k
        fp.VertexPartition(parts, k).save(folder, graph=self.graph, **given)
        return folder


@pytest.fixture(scope="module")
def papers(tmp_path_factory):
    return Papers(tmp_path_factory.mktemp("papers"))


@pytest.fixture(scope="module")
def parts(papers, tmp_path_factory):
    """Two relations with labels and features of edges, in three parts."""
    both = ("writes", "cites")
    folder = tmp_path_factory.mktemp("edges") / "parts"
    return papers.saved(folder, relations=both, edge_features=papers.attributes)


@pytest.fixture
def alone():
    """Train in this process."""
    return in_process(fp.train.edges)


@pytest.mark.parametrize("relation", ["writes", "cites"])
def test_labels_that_follow_from_the_ends_are_learned(alone, papers, tmp_path, relation):
    folder = papers.saved(tmp_path / "parts", relations=[relation])
    trained = alone(folder, **{**QUICK, "hidden": 32, "epochs": 25, "dropout": 0})
    assert trained.relation[1] == relation  # the only one with labels
    assert trained.summary["test_accuracy"] > 0.85
    assert trained.summary["val_f1"] == trained.summary["val_accuracy"] > 0.85


def test_what_only_features_of_edges_tell_is_learned(alone, papers, tmp_path):
    told = {"writes": (papers.attributes["writes"][:, 1] > 0).astype(int)}
    folder = papers.saved(tmp_path / "parts", edge_features=papers.attributes, edge_labels=told)
    trained = alone(folder, **{**QUICK, "epochs": 20, "dropout": 0})
    assert trained.summary["test_accuracy"] > 0.93


@pytest.mark.parametrize(
    ("relation", "given"),
    [
        ("writes", {"dropout": 0.3}),
        ("cites", {"model": "hgt", "cache": 0.2, "learned": True}),
        ("writes", {"model": "rgat", "numbers": True, "fanouts": {"writes": [-1, 2], "rev_writes": [3, 3]}}),
    ],
)
def test_parts_and_workers_do_not_change_the_losses(alone, papers, tmp_path, relation, given):
    given = {**QUICK, "precision": "float64", **given}
    more = {"edge_features": papers.attributes, "relations": [relation]}
    if given.pop("learned", False):
        more["features"] = {name: papers.x[name] for name in ("paper", "field")}
    if given.pop("numbers", False):
        u, v = papers.records[relation].T
        more["edge_labels"] = {relation: papers.of("author", u)[:, 0] * papers.of("paper", v)[:, 1]}
    one = alone(papers.saved(tmp_path / "one", 1, **more), **given)
    for k, workers in ((2, 1), (4, 2)):
        other = fp.train.edges(papers.saved(tmp_path / f"{k}", k, **more), workers=workers, **given)
        np.testing.assert_allclose(other.history["loss"], one.history["loss"], rtol=1e-9)
        scores = [name for name in one.summary if name.startswith("test_")]
        for name in scores:
            assert other.summary[name] == pytest.approx(one.summary[name], rel=1e-3)
        for name, rows in (one.learned or {}).items():
            np.testing.assert_allclose(rows, other.learned[name], rtol=1e-9, atol=1e-9)
    assert len(scores) == 2
    assert (one.learned is None) == ("features" not in more)


def dense(papers, network, relation, attributes=None):
    """Return the outputs of an encoder of ``heterosage`` and the head for all records, from dense matrices."""
    n, h = papers.graph.num_vertices, {name: torch.from_numpy(x) for name, x in papers.x.items()}
    means = {}
    for each in papers.graph.relations:
        known = torch.zeros(n, n)
        for u, v in papers.records[each.name].tolist():
            known[v, u] += 1
            if each.reverse == "merged" and u != v:
                known[u, v] += 1
        ways = [(each.name, each.source, each.target, known)]
        if each.reverse is True:
            ways.append((f"rev_{each.name}", each.target, each.source, known.T))
        for name, source, target, matrix in ways:
            block = matrix[slice_of(papers, target), slice_of(papers, source)]
            means[source, name, target] = block / block.sum(1, keepdim=True).clamp(min=1)
    layers = network.encoder.layers
    for index, layer in enumerate(layers):
        found = {name: own(h[name]) for name, own in layer.own.items()}
        for key, linear in layer.relations.items():
            found[key[2]] = found[key[2]] + linear(means[key] @ h[key[0]])
        h = {name: rows if index == len(layers) - 1 else rows.relu() for name, rows in found.items()}
    source, target = next((e.source, e.target) for e in papers.graph.relations if e.name == relation)
    u, v = papers.records[relation].T
    ends = h[source][u - papers.ranges[source].start], h[target][v - papers.ranges[target].start]
    rows = [*ends, *([] if attributes is None else [torch.from_numpy(attributes)])]
    return network.head.out(network.head.hidden(torch.cat(rows, 1)).relu()).detach()


def slice_of(papers, name):
    return slice(papers.ranges[name].start, papers.ranges[name].stop)


@pytest.mark.parametrize("relation", ["writes", "cites"])
def test_predictions_and_scores_are_those_of_dense_matrices(alone, papers, parts, tmp_path, relation):
    given = {**QUICK, "model": "heterosage", "relation": relation}
    trained = alone(parts, **given, metrics={"share": lambda y, t: (y.argmax(1) == t).float()})
    logits = dense(papers, trained.network(), relation, papers.attributes[relation])
    np.testing.assert_allclose(trained.predict(parts, what="logits"), logits, atol=1e-4)
    classes = trained.predict(parts, out=tmp_path / "classes.npy")
    np.testing.assert_array_equal(classes, logits.argmax(1))
    np.testing.assert_array_equal(trained.predict(parts, edges=[7, 3]), classes[[7, 3]])
    y, splits = papers.y[relation], papers.splits[relation]
    for split in ("val", "test"):
        chosen = splits[split] if split == "val" else np.isin(np.arange(len(y)), splits[split])
        accuracy = (classes == y)[chosen & (y >= 0)].mean()
        assert trained.summary[f"{split}_accuracy"] == pytest.approx(accuracy)
        assert trained.summary[f"{split}_share"] == pytest.approx(accuracy)
    with pytest.raises(fp.errors.ParameterError, match=f"edges: {len(y)} is not between 0 and {len(y) - 1}"):
        trained.predict(parts, edges=[len(y)])


def test_labels_of_several_classes_and_weights_of_classes(alone, papers, tmp_path):
    u, v = papers.records["writes"].T
    several = np.stack([papers.of("author", u)[:, 0] > 0, papers.of("paper", v)[:, 1] > 0], 1)
    folder = papers.saved(tmp_path / "several", edge_labels={"writes": several})
    predicted = alone(folder, **QUICK).predict(folder)
    assert predicted.shape == several.shape
    assert predicted.dtype == np.uint8
    folder = papers.saved(tmp_path / "parts")
    weights = torch.tensor([1.0, 2, 1, 1])
    weighted, plain = (
        alone(folder, **QUICK, loss=loss) for loss in (nn.CrossEntropyLoss(weights), nn.CrossEntropyLoss())
    )
    assert weighted.history["loss"][0] != plain.history["loss"][0]


@pytest.mark.parametrize("relation", ["writes", "cites"])
def test_each_record_counts_once_and_a_batch_leaves_out_its_edges(papers, parts, relation):
    dataset = LabelledEdges(parts, relation)
    splits, y = papers.splits[relation], papers.y[relation]
    expected = np.flatnonzero(splits["train"] & (y >= 0))
    np.testing.assert_array_equal(dataset.supervision.pairs, papers.records[relation][expected])
    np.testing.assert_array_equal(dataset.supervision.labels, y[expected])
    assert dataset.num_train == len(expected)
    assert dataset.num_val == np.count_nonzero(splits["val"] & (y >= 0))
    options = EdgeOptions.checked({**QUICK, "fanouts": [-1, -1]})
    steps, seen = Edges(dataset, options, 1 << 20, False), []
    source, _, target = dataset.key
    reverse = (target, f"rev_{relation}", source)
    for step in steps.epoch(0):
        rows = step.graphs[-1]
        names = {name: ids.numpy() for name, ids in rows.vertices.items()}
        ends = [names[name][each] for name, each in zip(step.types, step.ends.numpy(), strict=True)]
        assert step.types == (source, target)
        taken = set(zip(*(each.tolist() for each in ends), strict=True))
        ways = {dataset.key: False} | ({reverse: True} if reverse in rows.relations else {dataset.key: None})
        for key, back in ways.items():
            of = rows.relations[key]
            targets = names[key[2]][np.repeat(np.arange(len(of.indptr) - 1), np.diff(of.indptr))]
            edges = set(zip(names[key[0]][of.indices].tolist(), targets.tolist(), strict=True))
            turned = {(v, u) for u, v in edges}
            assert edges
            assert not taken & ((edges | turned) if back is None else turned if back else edges)
        seen += zip(*(each.tolist() for each in ends), step.y.tolist(), step.attributes.tolist(), strict=True)
    known = zip(
        *papers.records[relation][expected].T.tolist(),
        y[expected].tolist(),
        papers.attributes[relation][expected].tolist(),
        strict=True,
    )
    assert sorted(seen) == sorted(known)
    steps.close()


class OfOneRelation(TypedNetwork):
    """The layers of ``graphsage`` over the only relation that has edges."""

    class Layer(SAGE):
        """A layer over the vertices of one type."""

        def forward(self, rows, x):
            """Return the rows of the type."""
            return {"item": super().forward(rows.relations["item", "likes", "item"], x["item"])}

    def make_layer(self, shape, options):
        """Return one layer."""
        return self.Layer(shape.widths["item"], shape.out)


@pytest.mark.parametrize("directedness", ["undirected", "directed"])
def test_over_one_type_the_losses_are_those_without_types_bit_for_bit(alone, tmp_path, directedness):
    random, n = np.random.default_rng(0), 60
    records = random.integers(0, n, (400, 2))
    records[:20] = records[20:40]
    records[40:60, 1] = records[40:60, 0]
    if directedness == "directed":  # a batch also leaves out the reverse of its edges, which have no types
        records.sort(axis=1)
    x, y = random.standard_normal((n, 4)).astype(np.float32), random.integers(0, 3, 400)
    splits = {"train": np.arange(300), "val": np.arange(300, 400)}
    attributes = random.standard_normal((400, 2)).astype(np.float32)
    graph = fp.open_graph(records, num_vertices=n, directedness=directedness)
    own = {"features": x, "edge_features": attributes, "edge_labels": y, "edge_label_splits": splits}
    fp.VertexPartition(np.arange(n) % 3, 3).save(tmp_path / "plain", graph=graph, **own)
    reverse = "merged" if directedness == "undirected" else False
    relations = [
        ("likes", "item", "item", reverse, records.tolist()),
        ("owns", "item", "item", reverse, []),
    ]
    typed = Typed([("item", n)], relations, (np.arange(n) % 3).tolist(), 3, directedness)
    typed.saved(
        tmp_path,
        features={"item": x},
        **{name: {"likes": rows} for name, rows in own.items() if name != "features"},
    )
    given = {**QUICK, "fanouts": [-1, -1]}
    one = alone(tmp_path / "plain", **{**given, "model": "graphsage"})
    other = alone(tmp_path / "parts", **{**given, "model": OfOneRelation})
    assert one.history["loss"].to_list() == other.history["loss"].to_list()
    assert one.history["val_accuracy"].to_list() == other.history["val_accuracy"].to_list()
    np.testing.assert_allclose(
        one.predict(tmp_path / "plain", what="logits"),
        other.predict(tmp_path / "parts", what="logits"),
        rtol=1e-6,
        atol=1e-6,
    )


def test_a_resumed_training_is_that_of_one_go(alone, papers, parts, tmp_path):
    given = {**QUICK, "relation": "cites"}
    whole = alone(parts, **given, out=tmp_path / "whole")
    alone(parts, **{**given, "epochs": 1}, out=tmp_path / "run")
    with pytest.raises(fp.errors.ParameterError, match="relation"):
        alone(parts, **{**QUICK, "relation": "writes"}, out=tmp_path / "run", resume=True)
    resumed = fp.train.open(tmp_path / "run").resume(epochs=3)
    assert resumed.history["loss"].to_list() == whole.history["loss"].to_list()
    opened = fp.train.open(tmp_path / "run")
    assert type(opened) is fp.train.TrainedEdges
    assert opened.relation == whole.relation == ("paper", "cites", "paper")
    np.testing.assert_array_equal(opened.predict(parts), whole.predict(parts))
    labels = {name: y[::-1].copy() for name, y in papers.y.items()}
    other = papers.saved(
        tmp_path / "other",
        relations=("writes", "cites"),
        edge_features=papers.attributes,
        edge_labels=labels,
    )
    with pytest.raises(fp.errors.ParameterError, match="trained on other labels of edges"):
        alone(other, **given, out=tmp_path / "run", resume=True)


def test_learned_rows_are_part_of_predictions(alone, papers, tmp_path):
    folder = papers.saved(tmp_path / "parts", features={"paper": papers.x["paper"]})
    trained = alone(folder, **QUICK, out=tmp_path / "run")
    assert set(trained.learned) == {"author", "field"}
    opened = fp.train.open(tmp_path / "run")
    np.testing.assert_array_equal(opened.predict(folder), trained.predict(folder))
    y, test = papers.y["writes"], papers.splits["writes"]["test"]
    right = (trained.predict(folder) == y)[test[y[test] >= 0]].mean()
    assert trained.summary["test_accuracy"] == pytest.approx(right)


def hetero(task, options):
    """Return a model with ``forward(x_dict, edge_index_dict)``, which returns rows of one type."""

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(WIDTHS["author"], task.classes)

        def forward(self, x_dict, edge_index_dict):
            return {"author": self.layer(x_dict["author"])}

    return Model()


def test_what_does_not_fit_is_refused(alone, papers, parts, tmp_path):
    none = papers.saved(tmp_path / "none", relations=[])
    plain = tmp_path / "plain"
    fp.VertexPartition([0, 1, 0], 2).save(
        plain,
        graph=np.array([[0, 1], [1, 2]]),
        features=np.eye(3, dtype=np.float32),
        edge_labels=[0, 1],
        edge_label_splits={"train": [0, 1]},
    )
    no_splits = {"edge_label_splits": None}
    for source, given, message in (
        (parts, {}, "relation: cites, writes have labels and training records. Name one of them"),
        (parts, {"relation": "likes"}, "relation: 'likes' is no relation of .* There are cites, has_topic,"),
        (parts, {"relation": "rev_writes"}, "relation: 'rev_writes' is no relation of"),
        (parts, {"relation": "has_topic"}, "holds no edge_labels, no edge_label_splits of 'has_topic'. Save"),
        (
            none,
            {},
            r"no relation in .* has labels and training records. Save .* p.save\(DIR, edge_labels={'cites'",
        ),
        (papers.saved(tmp_path / "all", **no_splits), {"relation": "writes"}, "no edge_label_splits of 'wri"),
        (parts, {"relation": "writes", "model": "graphsage"}, "model: the graph has types"),
        (parts, {"relation": "writes", "model": hetero}, "model: hetero returns rows of one type"),
        (plain, {"relation": "likes", "model": "gcn"}, "relation: .* without types. Leave it out"),
    ):
        with pytest.raises(fp.errors.ParameterError, match=message):
            alone(source, **{**QUICK, **given})
    with pytest.raises(TypeError, match="relation: expected the name of a relation, got list"):
        alone(parts, **QUICK, relation=["writes"])
    trained = alone(parts, **{**QUICK, "epochs": 1}, relation="writes")
    with pytest.raises(
        fp.errors.ParameterError, match="without types, but the model was trained on one with"
    ):
        trained.predict(plain)
    without = papers.saved(tmp_path / "without")
    with pytest.raises(
        fp.errors.ParameterError, match="has 0 features of edges, but the model was trained on 2"
    ):
        trained.predict(without)
    narrow = {**papers.x, "field": papers.x["field"][:, :1]}
    other = papers.saved(tmp_path / "other", features=narrow, edge_features=papers.attributes)
    with pytest.raises(fp.errors.ParameterError, match="has other widths than the graph"):
        trained.predict(other)


def test_the_command_line_trains_and_predicts(parts, tmp_path, capsys):
    words = f"train edges {parts} --relation cites --model rgcn --epochs 1 --batch-size 300 --workers 1"
    outputs = ["--predictions", str(tmp_path / "classes.npy"), "-o", str(tmp_path / "run")]
    assert main([*words.split(), *outputs]) == 0
    assert "test_accuracy" in capsys.readouterr().out
    trained = fp.train.open(tmp_path / "run")
    np.testing.assert_array_equal(np.load(tmp_path / "classes.npy"), trained.predict(parts))
    assert main([*words.replace(" --relation cites", "").split()]) != 0
    assert "Name one of them with --relation" in capsys.readouterr().err
