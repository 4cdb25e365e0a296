"""Everything that a training moves to a GPU, with a pretended one: each method, model and task takes a few steps."""

import numpy as np
import pytest

import fastpart as fp
from edge_partitioned import planted_edges
from in_process import one_worker
from random_typed import random_typed_graph
from temporal import timed_graph
from trainable import planted
from typed_training import typed_parts

torch = pytest.importorskip("torch")

from fake_device import GPU, pretended_gpu  # noqa: E402
from fastpart.train.models import MODELS, TYPED_MODELS  # noqa: E402

QUICK = {"hidden": 8, "epochs": 1, "threads": 1}
FACTS = {"threads": 1, "epochs": 1, "batch_size": 64, "negatives": 5}
SMALL = {"n": 60, "m": 240}
BATCHES = {**QUICK, "batch_size": 32, "fanouts": [3, 2]}

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.timeout(300)]


def on_gpu(method, source, **given):
    """Train there, and return the result, which is on the CPU."""
    with one_worker(), pretended_gpu():
        trained = getattr(fp.train, method)(source, device="cuda", **given)
    assert np.isfinite(trained.history["loss"].to_numpy()).all()
    assert trained.network().state_dict().keys() == trained.weights.keys()  # without a GPU
    return trained


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    edge_features = np.random.default_rng(2).standard_normal((240, 3)).astype(np.float32)
    return planted(tmp_path_factory.mktemp("planted"), k=1, edge_features=edge_features, **SMALL)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["full", "sampled"])
def test_models(parts, method, model):
    on_gpu(method, parts, model=model, **QUICK, batch_size=16)


class Own(torch.nn.Module):
    """A model of a user, with a normalisation whose statistics are buffers."""

    def __init__(self, task, options):
        super().__init__()
        self.first = torch.nn.Linear(task.features + 3, options.hidden)
        self.norm = torch.nn.BatchNorm1d(options.hidden)
        self.last = torch.nn.Linear(options.hidden, task.classes)

    def forward(self, x, edge_index, edge_attr):
        source, target = edge_index
        messages = torch.cat([x[source], edge_attr], 1)
        h = x.new_zeros(len(x), messages.shape[1]).index_add_(0, target, messages)
        return self.last(self.norm(self.first(h)).relu())


@pytest.mark.parametrize(
    ("method", "given"),
    [
        ("full", {"batch_size": None}),
        ("full", {"model": Own, "batch_size": None}),
        ("sampled", {"model": Own, "batch_size": 16}),
        ("sampled", {"batch_size": 16, "precision": "bfloat16"}),
        ("sampled", {"batch_size": 16, "precision": "float64", "clip": 1.0}),
        ("sampled", {"batch_size": 16, "resident": 0, "scores": "sampled"}),
        (
            "sampled",
            {"batch_size": 16, "cache": 0.2, "loss": torch.nn.CrossEntropyLoss(weight=torch.arange(4.0))},
        ),
        ("bytegnn", {"batch_size": 16}),
        ("sdt", {"batch_size": 16, "model": "graphsaint"}),
        ("sdt", {"batch_size": None, "average": "gradients", "model": "gat"}),
        ("sancus", {}),
        ("sancus", {"model": "gcn", "precision": "bfloat16"}),
    ],
)
def test_methods_and_options(parts, method, given):
    on_gpu(method, parts, **{**QUICK, "epochs": 2}, **given)


@pytest.mark.parametrize(
    "given", [{}, {"delay": 2}, {"exchange": "never"}, {"model": "gat"}, {"model": "gcn"}]
)
def test_parts_of_edges(tmp_path, given):
    on_gpu("distgnn", planted_edges(tmp_path, k=1, **SMALL), **QUICK, **given)


@pytest.mark.parametrize("task", ["several", "regression"])
@pytest.mark.parametrize("method", ["full", "sampled", "sancus"])
def test_tasks(tmp_path, method, task):
    random = np.random.default_rng(1)
    labels = random.integers(0, 2, (60, 3)) if task == "several" else random.random((60, 2))
    on_gpu(method, planted(tmp_path, k=1, labels=labels, **SMALL), **QUICK)


@pytest.mark.parametrize("widths", [None, {"author": 3, "paper": 5}], ids=["features", "learned"])
@pytest.mark.parametrize("model", TYPED_MODELS)
def test_types(tmp_path, model, widths):
    typed_parts(tmp_path, k=1, widths=widths)
    on_gpu("sampled", tmp_path / "parts", model=model, **BATCHES)


def test_times(tmp_path):
    records, times, edge_times = timed_graph(60, 400)
    times = np.maximum(times, 1)  # all have one
    random = np.random.default_rng(0)
    given = {"labels": random.integers(0, 3, 60), "splits": {"train": range(40), "val": range(40, 60)}}
    given["features"] = random.standard_normal((60, 4)).astype(np.float32)
    graph = fp.open_graph(records, num_vertices=60)
    fp.algorithms.random(graph, k=1, of="vertices").save(
        tmp_path / "parts", graph=graph, times=times, edge_times=edge_times, **given
    )
    on_gpu("sampled", tmp_path / "parts", temporal="last", **BATCHES)


@pytest.fixture(scope="module")
def links(tmp_path_factory):
    folder = tmp_path_factory.mktemp("links")
    graph = fp.generate.planted(folder / "g.bin", n=60, m=300, classes=3, features=4, seed=1)
    splits = fp.split_edges(graph, seed=2)
    features = folder / "g.bin.features.npy"
    fp.algorithms.random(splits.graph, k=1, of="vertices").save(
        folder / "parts", graph=splits.graph, edge_splits=splits, features=features
    )
    return folder / "parts"


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"embeddings": 5, "decoder": "mlp"},
        {"decoder": "dot", "negatives": "batch", "resident": 0, "precision": "float64"},
        {"model": "gat", "precision": "bfloat16", "embeddings": 3},
    ],
)
def test_links(links, given):
    on_gpu("links", links, **BATCHES, **given)


@pytest.mark.parametrize("decoder", ["dot", "distmult", "complex", "rotate", "mlp"])
def test_embeddings(links, decoder):
    on_gpu("embeddings", links, decoder=decoder, width=6, **FACTS)


@pytest.mark.parametrize("encoder", ["rgcn", "rgat"])
def test_encoders(tmp_path, encoder):
    splits = fp.split_edges(random_typed_graph(tmp_path, 5, scale=1), seed=2)
    sizes = {each.name: each.n for each in splits.graph.types}
    features = {"paper": np.random.default_rng(0).standard_normal((sizes["paper"], 3)).astype(np.float32)}
    fp.algorithms.random(splits.graph, k=1, of="vertices").save(
        tmp_path / "parts", graph=splits.graph, edge_splits=splits, features=features
    )
    on_gpu("embeddings", tmp_path / "parts", encoder=encoder, hidden=8, fanouts=[2, 2], **FACTS)


@pytest.mark.parametrize("resident", [None, 0, 400])
def test_batches_of_loaders(parts, links, tmp_path, resident):
    typed, *_ = typed_parts(tmp_path, k=1)
    given = {"fanouts": [3, 2], "batch_size": 16, "device": "cuda", "resident": resident}
    loaders = {
        "plain": lambda: fp.open_partition(parts).loader("train", **given),
        "links": lambda: fp.open_partition(links).link_loader("train", **given),
        "types": lambda: typed.loader("train", **given),
    }
    for name, loader in loaders.items():
        with pretended_gpu():
            batch = next(iter(loader()))
            rows = list(batch.x_dict.values()) if name == "types" else [batch.x]
            ends = list(batch.edge_index_dict.values()) if name == "types" else [batch.edge_index]
            labels = batch.edge_label if name == "links" else batch.y
            assert {each.device for each in (*rows, *ends, labels)} == {GPU}
