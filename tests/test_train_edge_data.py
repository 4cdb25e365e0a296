"""Directories of edge partitions as training reads them: the same graph as from parts of the vertices."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpart as fp
from strategies import edge_lists

torch = pytest.importorskip("torch")

from fastpart.train.data.dataset import SPLITS, Dataset, EdgeDataset, open_dataset  # noqa: E402  # noqa: E402

QUICK = {"hidden": 8, "threads": 1, "heads": 2, "dropout": 0.0}

pytestmark = pytest.mark.usefixtures("one_thread")


def contents(n, seed=0, several=False):
    """Return features, labels (a third of one class each are unlabelled) and splits of n vertices."""
    random = np.random.default_rng(seed)
    labels = random.integers(-1, 3, n)
    labels[0] = 2
    order = random.permutation(np.arange(1, n))
    return {
        "features": random.random((n, 5), np.float32),
        "labels": random.integers(0, 2, (n, 3)) if several else labels,
        "splits": {
            "train": np.append(order[: n // 2], 0),
            "val": order[n // 2 : 3 * n // 4],
            "test": order[3 * n // 4 :],
        },
    }


def both(folder, edges, n, k=3, several=False, directedness=None, seed=0):
    """Save the graph as parts of vertices and as parts of edges, some of them empty, and return the directories."""
    opened = fp.open_graph(
        np.asarray(edges, np.uint32).reshape(-1, 2), num_vertices=n, directedness=directedness
    )
    random = np.random.default_rng(seed)
    partitions = {
        "vertex": fp.VertexPartition(random.integers(0, k, n), k=k + 1),
        "edge": fp.EdgePartition(random.integers(0, k, opened.num_edges), k=k + 1),
    }
    for name, partition in partitions.items():
        partition.save(folder / name, graph=opened, **contents(n, seed, several))
    return folder / "vertex", folder / "edge"


@pytest.fixture(scope="module")
def graph():
    """Return the edges of 120 vertices, of which the last 10 are isolated."""
    return np.random.default_rng(1).integers(0, 110, (500, 2)), 120


def assert_same(one, other):
    """Assert that two graphs that know no parts are the same, down to the order of the in-edges."""
    assert torch.equal(one.features, other.features)
    assert torch.equal(one.labels, other.labels)
    assert one.labels.dtype == other.labels.dtype
    assert one.splits.keys() == other.splits.keys() == set(SPLITS)
    for name in SPLITS:
        assert torch.equal(one.splits[name], other.splits[name])
    assert (one.vertices == other.vertices).all()
    assert one.num_inner == other.num_inner
    assert np.array_equal(one.graph.indptr, other.graph.indptr)
    assert np.array_equal(one.graph.indices, other.graph.indices)
    assert torch.equal(one.graph.source_degree, other.graph.source_degree)
    assert torch.equal(one.graph.vertices, other.graph.vertices)


@settings(max_examples=40)
@given(st.data(), st.sampled_from(["undirected", "symmetric", "directed"]), st.booleans())
def test_the_whole_graph_is_that_of_parts_of_vertices(tmp_path_factory, data, directedness, several):
    n, edges = data.draw(edge_lists())
    if n == 0:
        return
    vertex, edge = both(tmp_path_factory.mktemp("both"), edges, n, several=several, directedness=directedness)
    one, other = Dataset(vertex), EdgeDataset(edge)
    assert one.task == other.task
    assert one.num_train == other.num_train
    assert_same(one.whole(), other.whole())


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("size", [None, 20])
def test_full_learns_the_same_over_parts_of_either_kind(tmp_path, graph, several, size):
    made = [
        fp.train.full(folder, epochs=5, batch_size=size, **QUICK)
        for folder in both(tmp_path, *graph, several=several)
    ]
    losses, others = (trained.history["loss"].to_numpy() for trained in made)
    np.testing.assert_allclose(losses, others, rtol=1e-5)
    assert losses[-1] < losses[0]
    for name in ("val_f1", "test_f1", "test_accuracy"):
        assert made[0].summary[name] == pytest.approx(made[1].summary[name], abs=1e-5)


def test_every_vertex_is_learned_about_where_its_root_is(tmp_path, graph):
    _, folder = both(tmp_path, *graph)
    dataset, given = EdgeDataset(folder), contents(graph[1])
    expected = {v for v in given["splits"]["train"] if given["labels"][v] >= 0}
    found = []
    for part, count in zip(dataset.partition.parts, dataset.train_counts, strict=True):
        ids = part.vertices[dataset.splits(part)["train"].numpy()]
        assert len(ids) == count
        assert (part.root[dataset.splits(part)["train"].numpy()] == part.index).all()
        found += list(ids)
    assert sorted(found) == sorted(expected)
    assert dataset.num_train == len(found)


def test_graphs_know_degrees_and_global_ids(tmp_path, graph):
    edges, n = graph
    dataset = Dataset(both(tmp_path, *graph)[0])
    degree = np.bincount(edges.ravel(), minlength=n) - np.bincount(
        edges[edges[:, 0] == edges[:, 1], 0], minlength=n
    )
    for local in (dataset.part(0), dataset.part(3), dataset.whole()):
        assert (local.graph.vertices.numpy() == local.vertices).all()
        assert (local.graph.source_degree.numpy() == degree[local.vertices]).all()
        inner = local.inner()
        assert torch.equal(inner.vertices, local.graph.vertices)
        assert torch.equal(inner.target_degree, local.graph.source_degree[: local.num_inner])
        assert (np.diff(inner.indptr) == degree[local.vertices[: local.num_inner]]).all()


def test_each_kind_is_opened_as_what_it_is(tmp_path, graph):
    vertex, edge = both(tmp_path, *graph)
    assert isinstance(open_dataset(vertex), Dataset)
    assert isinstance(open_dataset(edge), EdgeDataset)
    with pytest.raises(
        fp.errors.ParameterError,
        match=r"is an edge partition\. .* over parts of the vertices\. Make .*spring",
    ):
        Dataset(edge)
    with pytest.raises(
        fp.errors.ParameterError, match=r'is a vertex partition\. .*sigma\(\.\.\., of="edges"\)'
    ):
        EdgeDataset(vertex)


@pytest.mark.parametrize("missing", ["features", "labels", "splits"])
def test_incomplete_directories_are_refused(tmp_path, graph, missing):
    edges, n = graph
    given = {name: value for name, value in contents(n).items() if name != missing}
    if missing == "labels":
        del given["splits"]
    partition = fp.EdgePartition(np.zeros(len(edges), int), k=1)
    partition.save(tmp_path / "parts", graph=fp.open_graph(edges.astype(np.uint32), num_vertices=n), **given)
    with pytest.raises(fp.errors.ParameterError, match=f"holds no {missing}.*. Save the partition with"):
        EdgeDataset(tmp_path / "parts")


def test_a_vertex_without_a_root_is_damage(tmp_path, graph):
    folder = shutil.copytree(both(tmp_path, *graph)[1], tmp_path / "damaged")
    root = np.load(folder / "part-00000" / "root.npy")
    np.save(folder / "part-00000" / "root.npy", np.where(root == 0, 1, root).astype(np.int32))
    with pytest.raises(
        fp.errors.GraphFormatError, match=r"damaged: vertex [0-9]+ belongs to 0 parts instead of 1"
    ):
        EdgeDataset(folder).whole()


def test_reading_needs_no_dgl(tmp_path, graph):
    folders = both(tmp_path, *graph)
    code = (
        "import sys, json; sys.modules['dgl'] = None\n"
        "from fastpart.train.data.dataset import open_dataset\n"
        "made = [open_dataset(path) for path in sys.argv[1:]]\n"
        "print(json.dumps([[each.num_train, each.labels(each.partition.parts[0]).tolist()] for each in made]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *folders], capture_output=True, timeout=60, check=True, text=True
    )
    datasets = [open_dataset(folder) for folder in folders]
    assert json.loads(done.stdout) == [
        [each.num_train, each.labels(each.partition.parts[0]).tolist()] for each in datasets
    ]
