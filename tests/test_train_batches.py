"""Batches: neighbours, unions of clusters, and graphs of random walks, which their weights make right on average."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from trainable import planted

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import Dataset  # noqa: E402
from fastpart.train.graphs.rows import Rows  # noqa: E402
from fastpart.train.learning import batches as module  # noqa: E402
from fastpart.train.learning.batches import _counts, batches  # noqa: E402
from fastpart.train.learning.learner import batches_of  # noqa: E402
from fastpart.train.learning.local_graph import LocalGraph  # noqa: E402
from fastpart.train.options import Options  # noqa: E402

KINDS = {"neighbour": "graphsage", "cluster": "clustergcn", "saint": "graphsaint"}

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return Dataset(planted(tmp_path_factory.mktemp("planted"), k=2))


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def clusters_of(local):
    (clusters,) = local.cache.values()
    return torch.from_numpy(clusters)


def edges_of(graph):
    return list(map(tuple, graph.edge_index.T.tolist()))


def content(batch):
    """Return all that is in a batch."""
    of_graphs = [(edges_of(graph), graph.source_degree.tolist()) for graph in batch.graphs]
    weights = batch.weights if batch.weights is None else batch.weights.tolist()
    return of_graphs, batch.inputs.tolist(), batch.rows.tolist(), batch.targets.tolist(), weights


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_batches_of(dataset, kind):
    options = Options(model=KINDS[kind], batch_size=64, fanouts=(3, 3))
    first, again = (
        [content(batch) for batch in batches_of(dataset.whole(), options, generator())] for _ in range(2)
    )
    other = [content(batch) for batch in batches_of(dataset.whole(), options, generator(1))]
    assert len(first) > 1
    assert first == again != other


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [None, 1000, 64, 7])
@pytest.mark.parametrize("part", [None, 0])
def test_every_training_vertex_is_a_target(dataset, kind, size, part):
    local = dataset.whole() if part is None else dataset.part(part)
    options = Options(model=KINDS[kind], batch_size=size, fanouts=(3, 3))
    targets = []
    for batch in batches_of(local, options, generator()):
        assert len(batch.targets) == len(batch.rows) > 0
        inputs = np.arange(local.graph.num_targets) if batch.inputs is None else batch.inputs
        assert (inputs[batch.rows] == batch.targets).all()
        degrees = local.graph.source_degree[inputs.astype(int)]
        torch.testing.assert_close(batch.graphs[0].source_degree, degrees)
        targets += batch.targets.tolist()
    expected = sorted(local.splits["train"].tolist())
    assert (sorted(set(targets)) if kind == "saint" else sorted(targets)) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_without_training_vertices_there_is_no_batch(dataset, kind):
    local = dataset.part(0)
    local.splits["train"] = local.splits["train"][:0]
    for size in (None, 5):
        options = Options(model=KINDS[kind], batch_size=size, fanouts=(3, 3))
        assert list(batches_of(local, options, generator())) == []


@pytest.mark.parametrize("kind", ["cluster", "saint"])
def test_sampled_graphs_are_induced(dataset, kind):
    local = dataset.whole()
    edges = edges_of(local.graph)
    for batch in batches_of(local, Options(model=KINDS[kind], batch_size=100), generator()):
        members = batch.inputs.tolist()
        inside = set(members)
        assert len(inside) == len(members)
        found = sorted((members[u], members[v]) for u, v in edges_of(batch.graphs[0]))
        assert found == sorted((u, v) for u, v in edges if u in inside and v in inside)


def test_clusters_stay_and_their_groups_change(dataset):
    local, shuffled = dataset.whole(), generator()
    options = Options(model="clustergcn", batch_size=150)
    first, second = (list(batches_of(local, options, shuffled)) for _ in range(2))
    assert [batch.inputs.tolist() for batch in first] != [batch.inputs.tolist() for batch in second]
    clusters = clusters_of(local)
    assert int(clusters.max()) + 1 == 12  # of 600 vertices, for 2 groups
    for batch in first + second:
        whole = set(clusters[batch.inputs.astype(int)].tolist())
        assert len(batch.inputs) == sum(int((clusters == cluster).sum()) for cluster in whole)


def test_clusters_have_most_edges_inside(dataset):
    local = dataset.whole()
    next(batches_of(local, Options(model="clustergcn", batch_size=150), generator()))
    clusters = clusters_of(local)
    sources, destinations = local.graph.edge_index
    inside = (clusters[sources] == clusters[destinations]).float().mean()
    assert inside > 2.5 / 12  # 1 / 12 at random


def small():
    """Return a graph of 12 vertices, 8 of them to train on: a ring with chords and a pendant vertex."""
    ring = [(i, (i + 1) % 11) for i in range(11)] + [(0, 4), (2, 7), (5, 9), (3, 11)]
    both = np.array(ring + [(v, u) for u, v in ring])
    both = both[np.argsort(both[:, 1], kind="stable")]
    degree = np.bincount(both[:, 1], minlength=12)
    graph = Rows(np.concatenate(([0], np.cumsum(degree))), both[:, 0], torch.from_numpy(degree))
    values = torch.randn(12, 1, generator=generator())
    return LocalGraph(graph, values, torch.zeros(12).long(), {"train": torch.arange(8)}, np.arange(12), 12)


def test_saint_is_right_in_expectation(monkeypatch):
    """The weighted loss is the mean over the training vertices, the aggregate the mean over the neighbours."""
    monkeypatch.setattr(module, "COVERAGE", 300)
    local, options, shuffled = small(), Options(model="graphsaint", batch_size=2, layers=2), generator(5)
    losses = torch.zeros(12)
    losses[[1, 6]] = 1  # which are in fewer graphs than others
    sums, seen, means = torch.zeros(12), torch.zeros(12), []
    for _ in range(300):
        for batch in batches_of(local, options, shuffled):
            means.append(batch.weighted(losses[batch.targets.astype(int)]).sum().item() / batch.count)
            graph, inputs = batch.graphs[0], batch.inputs.astype(int)
            sums[inputs] += graph.mean(local.features[inputs]).squeeze(1)
            seen[inputs] += 1
    assert np.mean(means) == pytest.approx(losses[:8].mean().item(), rel=0.06)
    neighbours = [[u for u, w in edges_of(local.graph) if w == v] for v in range(12)]
    expected = torch.stack([local.features[these].mean() for these in neighbours])
    torch.testing.assert_close(sums / seen, expected, atol=0.1, rtol=0)


@pytest.mark.parametrize("kind", ["cluster", "saint"])
def test_what_was_found_out_about_a_part_is_remembered(tmp_path, kind):
    dataset = Dataset(planted(tmp_path, k=2, n=100, m=300))
    options = Options(model=KINDS[kind], batch_size=20)
    first = [content(batch) for batch in batches_of(dataset.part(1), options, generator())]
    ((key, found),) = dataset.part(1).cache.items()
    assert [content(batch) for batch in batches_of(dataset.part(1), options, generator())] == first
    assert dataset.part(1).cache[key] is found
    assert dataset.part(0).cache == {}


def fields_of(dataset, folder, count):
    """Return the vertices of a graph in memory dealt to several processes."""
    whole = dataset.whole().field
    bounds = np.linspace(0, whole.topology.num_vertices, count + 1).astype(int)
    return [
        replace(whole, own=slice(first, end), folder=folder, rank=rank, processes=count, cache={})
        for rank, (first, end) in enumerate(pairwise(bounds))
    ]


def test_every_seed_is_dealt_to_its_owner_once_an_epoch(dataset, tmp_path):
    fields = fields_of(dataset, tmp_path, 3)
    dealt = [list(field.dealt(70, np.random.default_rng(4))) for field in fields]
    assert {len(steps) for steps in dealt} == {5}  # of 300 training vertices
    assert [sum(map(len, step)) for step in zip(*dealt, strict=True)] == [70, 70, 70, 70, 20]
    for field, steps in zip(fields, dealt, strict=True):
        own = [row for row in field.seeds.tolist() if field.own.start <= row < field.own.stop]
        assert sorted(np.concatenate(steps).tolist()) == sorted(own)


def test_processes_deal_the_clusters_of_their_own_vertices(dataset, tmp_path):
    options = Options(model="clustergcn", batch_size=50)
    fields = fields_of(dataset, tmp_path, 3)
    steps = [list(batches(field, options, seed=4)) for field in fields]
    assert {len(each) for each in steps} == {6}  # of 300 training vertices
    for field, each in zip(fields, steps, strict=True):
        members = np.sort(np.concatenate([batch.inputs for batch in each]))
        assert members.tolist() == list(range(field.own.start, field.own.stop))
        assert all(batch.count == len(batch.targets) for batch in each)


def test_saint_over_processes_is_right_in_expectation(dataset, tmp_path):
    """The loss is the mean over the training vertices, whose walks begin in several processes."""
    options = Options(model="graphsaint", batch_size=60)
    fields = fields_of(dataset, tmp_path, 2)
    for field in fields:
        _counts(field, 60, options)
    one = torch.zeros(600)
    one[fields[0].seeds[::7].astype(int)] = 1.0
    means = []
    for seed in range(60):
        for both in zip(*(batches(field, options, seed) for field in fields), strict=True):
            sums = sum(batch.weighted(one[batch.targets.astype(int)]).sum().item() for batch in both)
            means.append(sums / sum(batch.count for batch in both))
    expected = one[fields[0].seeds.astype(int)].mean().item()
    assert np.mean(means) == pytest.approx(expected, rel=0.04)
