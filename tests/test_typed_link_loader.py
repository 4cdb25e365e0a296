"""Loaders of the edges of one relation: pairs, negatives, and which edges are left out."""

import numpy as np
import pytest

import fastpart as fp
from random_typed import random_typed_graph

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")

SIZES = {"author": 160, "field": 20, "paper": 240}


def stored_of(folder, k):
    folder.mkdir(exist_ok=True)
    graph = random_typed_graph(folder / "graph", 5, scale=4)
    splits = fp.split_edges(graph, out=folder / "split.bin")
    parts = np.random.default_rng(k).integers(0, k, graph.num_vertices)
    fp.VertexPartition(parts, k).save(folder / "parts", graph=splits.graph, edge_splits=splits)
    return fp.open_partition(folder / "parts")


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    return stored_of(tmp_path_factory.mktemp("links"), 3)


def ranges(stored):
    return {each.name: each.range for each in stored.parts[0].types}


def ids_of(batch):
    """Return the ids of the ends of all pairs."""
    (source, _, target), (at_source, at_target) = batch.relation, batch.edge_label_index
    return batch.n_id_dict[source][at_source].numpy(), batch.n_id_dict[target][at_target].numpy()


def edges_in(batch, name):
    for key, edge_index in batch.edge_index_dict.items():
        if key[1] == name:
            sources, targets = batch.n_id_dict[key[0]][edge_index[0]], batch.n_id_dict[key[2]][edge_index[1]]
            return set(zip(sources.tolist(), targets.tolist(), strict=True))
    raise AssertionError(name)


@pytest.mark.parametrize("relation", ["cites", "writes"])
@pytest.mark.parametrize("negatives", ["uniform", "batch", "local"])
def test_pairs_are_edges_and_negatives_are_of_the_type_of_the_targets(stored, relation, negatives):
    loader = stored.link_loader(
        "train", relation=relation, fanouts=[-1], batch_size=32, negatives={negatives: 3}
    )
    source, _, target = loader.relation
    known, seen = set(map(tuple, loader.edges.tolist())), []
    for batch in loader:
        sources, targets = ids_of(batch)
        positives = list(zip(sources.tolist(), targets.tolist(), strict=True))[: batch.batch_size]
        seen += positives
        assert set(positives) <= known
        assert batch.edge_label.tolist() == [1] * len(positives) + [0] * 3 * len(positives)
        assert np.array_equal(sources[len(positives) :], np.repeat(sources[: len(positives)], 3))
        wrong = targets[len(positives) :].reshape(-1, 3)
        assert all(vertex in ranges(stored)[target] for vertex in wrong.ravel())
        assert not np.any(wrong == targets[: len(positives), None])
        assert not np.any(wrong == sources[: len(positives), None])
        assert not edges_in(batch, relation) & set(positives)
        back = {(v, u) for u, v in positives}
        if relation == "writes":
            assert not edges_in(batch, "rev_writes") & back
        else:
            assert not edges_in(batch, relation) & back
        for key, indptr in batch.indptr_dict.items():
            assert int(indptr[-1]) == len(batch.indices_dict[key]) == sum(batch.num_sampled_edges_dict[key])
    assert sorted(seen) == sorted(known)
    assert source in SIZES


def test_other_edges_stay(stored):
    loader = stored.link_loader("train", relation="writes", fanouts=[-1], batch_size=8)
    batch = next(iter(loader))
    sources, targets = ids_of(batch)
    positives = set(zip(sources[:8].tolist(), targets[:8].tolist(), strict=True))
    expected = set()
    for part in stored.parts:
        ends = part.of_relation("writes").in_edges()[:2]
        expected |= set(zip(*(end.tolist() for end in ends), strict=True))
    seeds = set(batch.n_id_dict["paper"][: batch.num_sampled_nodes_dict["paper"][0]].tolist())
    assert edges_in(batch, "writes") == {edge for edge in expected if edge[1] in seeds} - positives


def test_batches_are_the_same_for_any_partition_and_ranks(tmp_path):
    found = []
    for k, ranks in ((1, 1), (4, 3)):
        stored = stored_of(tmp_path / str(k), k)
        how = {"relation": "has_topic", "fanouts": [2, 2], "batch_size": 30, "negatives": 2}
        loaders = [stored.link_loader("train", rank=rank, world_size=ranks, **how) for rank in range(ranks)]
        steps = []
        for batches in zip(*loaders, strict=True):
            pairs = [
                pair for batch in batches for pair in zip(*map(np.ndarray.tolist, ids_of(batch)), strict=True)
            ]
            steps.append(sorted(pairs))
        found.append(steps)
    assert found[0] == found[1]


def test_pairs_may_be_given(stored):
    first = {name: ids.start for name, ids in ranges(stored).items()}
    pairs = np.array([[first["author"] + 3, first["paper"] + 1], [first["author"], first["paper"] + 7]])
    loader = stored.link_loader(pairs, relation=("author", "writes", "paper"), fanouts=[2], negatives=0)
    (batch,) = loader
    assert np.array_equal(np.stack(ids_of(batch), 1), pairs)
    with pytest.raises(fp.errors.ParameterError, match="is not of 'author'"):
        stored.link_loader(pairs[:, ::-1].copy(), relation="writes", fanouts=[2])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "relation: the graph has cites, has_topic, writes. Name the relation"),
        (
            {"relation": "likes"},
            "relation: unknown relation 'likes'. The relations are cites, has_topic, writes",
        ),
        ({"relation": "rev_writes"}, "this is the reverse of one"),
        ({"relation": "writes", "edges": "other"}, "no edge split 'other'"),
    ],
)
def test_what_does_not_fit_is_told(stored, given, message):
    with pytest.raises(fp.errors.ParameterError, match=message):
        stored.link_loader(**{"fanouts": [2], **given})


def test_a_graph_without_types_has_one_relation(tmp_path):
    ring = np.array([[v, (v + 1) % 60] for v in range(60)])
    splits = fp.split_edges(ring)
    fp.spring(splits.graph, k=2).save(tmp_path / "parts", graph=splits.graph, edge_splits=splits)
    with pytest.raises(fp.errors.ParameterError, match="relation: this graph has no types"):
        fp.open_partition(tmp_path / "parts").link_loader(fanouts=[2], relation="cites")


def test_temporal_batches_hold_nothing_later(tmp_path):
    graph = random_typed_graph(tmp_path / "graph", 5, scale=4)
    rng = np.random.default_rng(1)
    sizes, relations = (
        {each.name: each.n for each in graph.types},
        {each.name: each.m for each in graph.relations},
    )
    times = {name: rng.integers(0, 50, n) for name, n in sizes.items()}
    edge_times = {name: rng.integers(50, 100, m) for name, m in relations.items()}
    parts = fp.VertexPartition(rng.integers(0, 2, graph.num_vertices), 2)
    parts.save(tmp_path / "parts", graph=graph, times=times, edge_times=edge_times)
    stored = fp.open_partition(tmp_path / "parts")
    first = {name: ids.start for name, ids in ranges(stored).items()}
    authors, papers = rng.integers(0, sizes["author"], 60), rng.integers(0, sizes["paper"], 60)
    pairs = np.unique(np.stack([authors + first["author"], papers + first["paper"]], 1), axis=0)
    given = rng.integers(55, 95, len(pairs))
    loader = stored.link_loader(
        pairs,
        relation="writes",
        fanouts=[3, 3],
        batch_size=20,
        temporal="uniform",
        input_time=given,
        negatives=2,
    )
    known = {each.name: each.relation.first for each in stored.parts[0].edge_types}
    m = graph.num_edges
    for batch in loader:
        _, targets = ids_of(batch)
        seeds = given[batch.input_id]
        assert np.all(times["paper"][targets - first["paper"]] < np.concatenate([seeds, np.repeat(seeds, 2)]))
        for key, edge_index in batch.edge_index_dict.items():
            records = batch.e_id_dict[key].numpy() % m - known[key[1]]
            name = key[1].removeprefix("rev_")
            bounds = batch.seed_time_dict[key[2]].numpy()[edge_index[1]]
            assert np.all(edge_times[name][records] < bounds)
