"""Outputs of a network for some vertices: those of all vertices, for fewer rows."""

import numpy as np
import pytest

import fastpart as fp
from fastpart import _core
from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import Dataset  # noqa: E402
from fastpart.train.inference import inference as module  # noqa: E402
from fastpart.train.inference.inference import Inference  # noqa: E402
from fastpart.train.models import GraphSAGE, build  # noqa: E402
from fastpart.train.options import Options  # noqa: E402

N = 600


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return Dataset(planted(tmp_path_factory.mktemp("planted"), k=3, n=N, m=1200))


def outputs_of(dataset, network, folder, wanted=None, layers=None):
    """Return ids and rows, and how many rows each layer computed."""
    counts, layer = {}, type(network).layer

    def counted(index, graph, x):
        counts[index] = counts.get(index, 0) + graph.num_targets
        return layer(network, index, graph, x)

    network.layer = counted
    parts, found = dataset.partition.parts, {}
    inference = Inference(dataset, list(range(len(parts))), folder, 3)
    for part, vertices, rows in inference.outputs(network, wanted, layers):
        found.update(zip(parts[part].inner[vertices].tolist(), rows, strict=True))
    del network.layer
    return found, [counts[index] for index in sorted(counts)]


def needed_by(dataset, ids, hops):
    """Return the vertices from which some are reached in so many hops, by a plain search."""
    graph = dataset.whole().graph
    known = set(ids)
    for _ in range(hops):
        known |= {int(u) for v in known for u in graph.indices[graph.indptr[v] : graph.indptr[v + 1]]}
    return known


@pytest.mark.parametrize("model", ["graphsage", "gcn", "gat"])
@pytest.mark.parametrize("layers", [None, 2])
def test_few_outputs_are_those_of_all_for_fewer_rows(dataset, tmp_path, monkeypatch, model, layers):
    monkeypatch.setattr(module, "FEW", 1)
    network = build(dataset.task, Options(model=model, hidden=8, layers=3, fanouts=(1, 1, 1)))
    ids = [5, 77, 300]
    parts = dataset.partition.parts
    found, counts = outputs_of(
        dataset, network, tmp_path, lambda part: np.isin(parts[part].inner, ids), layers
    )
    everything, _ = outputs_of(dataset, network, tmp_path, None, layers)
    assert sorted(found) == ids
    for vertex, row in found.items():
        torch.testing.assert_close(row, everything[vertex], rtol=1e-5, atol=1e-6)
    depth = layers or 3
    assert counts == [len(needed_by(dataset, ids, depth - 1 - index)) for index in range(depth)]
    assert not list(tmp_path.iterdir())


def test_many_outputs_are_computed_from_all_vertices(dataset, tmp_path):
    network = build(dataset.task, Options(hidden=8, layers=3, fanouts=(1, 1, 1)))
    parts = dataset.partition.parts
    _, counts = outputs_of(dataset, network, tmp_path, lambda part: parts[part].inner < N // 2)
    assert counts == [N, N, N // 2]


def test_nothing_wanted_is_nothing(dataset, tmp_path):
    network = build(dataset.task, Options(hidden=8, layers=3, fanouts=(1, 1, 1)))
    parts = dataset.partition.parts
    found, counts = outputs_of(dataset, network, tmp_path, lambda part: np.zeros(parts[part].num_inner, bool))
    assert (found, counts) == ({}, [])


def share(outputs, labels):
    """Return what the right class gets, which tells a missing row where the accuracy may not."""
    return outputs.softmax(1).gather(1, labels[:, None])[:, 0]


def test_scores_are_the_same_for_any_number_of_workers(tmp_path):
    """Rows that a worker needs of the parts of the other one are computed there."""
    order = np.random.default_rng(0).permutation(N)
    splits = {"train": order[:300], "val": order[300:310], "test": order[310:325]}
    parts = planted(tmp_path, k=3, n=N, m=1200, splits=splits)
    given = {
        "epochs": 3,
        "hidden": 8,
        "threads": 2,
        "layers": 3,
        "batch_size": 50,
        "metrics": {"share": share},
    }
    one, two = (fp.train.sampled(parts, workers=workers, **given) for workers in (1, 2))
    for name in ("val_share", "test_share"):
        assert one.summary[name] == pytest.approx(two.summary[name], rel=1e-4)
    np.testing.assert_allclose(one.history["val_share"], two.history["val_share"], rtol=1e-4)


@pytest.mark.parametrize(
    ("model", "layers"),
    [("graphsage", 3), ("graphsage-gcn", 3), ("gin", 3), ("ngnn", 3), ("gcn", 3), ("sgc", 3), ("gat", 0)],
)
def test_outputs_from_means_are_those_from_copied_rows(dataset, tmp_path, monkeypatch, model, layers):
    network = build(dataset.task, Options(model=model, hidden=8, layers=3, fanouts=(1, 1, 1)))
    made = []
    for name in ("Means", "ScaledMeans"):
        known = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given, known=known: made.append(given) or known(*given))
    parts = dataset.partition.parts

    def outputs(wanted=None):
        inference = Inference(dataset, list(range(len(parts))), tmp_path, 3)
        return {
            vertex: row
            for part, vertices, rows in inference.outputs(network, wanted)
            for vertex, row in zip(parts[part].inner[vertices].tolist(), rows, strict=True)
        }

    found = outputs()
    assert len(made) == layers * len(parts)
    some = outputs(lambda part: parts[part].inner % 7 == 1)
    monkeypatch.setattr(Inference, "_by_means", lambda *given: False)
    copied = outputs()
    assert sorted(found) == sorted(copied) == list(range(N))
    for vertex, row in copied.items():
        torch.testing.assert_close(found[vertex], row, rtol=1e-4, atol=1e-5)
    assert sorted(some) == list(range(1, N, 7))
    for vertex, row in some.items():
        torch.testing.assert_close(row, found[vertex])


def test_means_of_rows_on_disk_are_those_of_rows_in_memory(dataset):
    parts = dataset.partition.parts
    files = [part.folder / "features.npy" for part in parts]
    memory, disk = (_core.Features(files, dataset.topology, direct=direct) for direct in (False, True))
    targets = np.random.default_rng(0).integers(0, N, 500).astype(np.uint32)
    found = memory.means(targets, 2)
    assert np.array_equal(found, disk.means(targets, 1))
    sampled = _core.Sampler(dataset.topology, [-1])
    for target, mean in zip(targets[:50], found, strict=False):
        sample = sampled.sample(np.array([target]))
        rows = memory.gather(sample.rows)[sample.indices]
        expected = rows.astype(np.float64).sum(0) / max(len(rows), 1)
        np.testing.assert_array_equal(mean, expected.astype(np.float32))


def test_outputs_of_other_precision_or_of_your_own_layers_are_computed_from_rows(
    dataset, tmp_path, monkeypatch
):
    monkeypatch.setattr(module, "Means", None)
    parts = list(range(len(dataset.partition.parts)))
    options = Options(hidden=8, layers=2, fanouts=(1, 1))
    list(Inference(dataset, parts, tmp_path, 2).outputs(build(dataset.task, options).double()))

    class Own(GraphSAGE):
        def layer(self, index, graph, x):
            return super().layer(index, graph, 2 * x)

    list(Inference(dataset, parts, tmp_path, 2).outputs(Own(dataset.task, options)))


def test_a_layer_that_takes_more_than_it_says_is_named(dataset, tmp_path):
    class More(torch.nn.Module):
        takes_means = True

        def forward(self, graph, x):
            return graph.mean(2 * x)

    class Network(GraphSAGE):
        def make_layer(self, *given):
            return More()

    network = Network(dataset.task, Options(hidden=8, layers=1, fanouts=(1,)))
    inference = Inference(dataset, list(range(len(dataset.partition.parts))), tmp_path, 1)
    with pytest.raises(
        fp.errors.ParameterError, match=r"takes_means = True may take the mean .* Leave takes_means out"
    ):
        list(inference.outputs(network))


@pytest.mark.parametrize("take", ["mean(x)", "sum(x)", "propagated(2 * x)"])
def test_a_layer_that_takes_more_than_propagated_rows_is_named(dataset, tmp_path, take):
    class More(torch.nn.Module):
        takes_propagated = True

        def forward(self, graph, x):
            return eval(f"graph.{take}")

    class Network(GraphSAGE):
        def make_layer(self, *given):
            return More()

    network = Network(dataset.task, Options(hidden=8, layers=1, fanouts=(1,)))
    inference = Inference(dataset, list(range(len(dataset.partition.parts))), tmp_path, 1)
    with pytest.raises(
        fp.errors.ParameterError, match=r"takes_propagated = True may take .* Leave takes_propagated out"
    ):
        list(inference.outputs(network))
