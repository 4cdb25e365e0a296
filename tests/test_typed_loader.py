"""Loaders of typed graphs: what batches hold, by type and by relation."""

from itertools import chain, pairwise

import numpy as np
import pytest

import fastpart as fp
from typed_training import WIDTHS, typed_parts

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return typed_parts(tmp_path_factory.mktemp("typed"), 3)


def firsts(stored):
    return {each.name: each.first for each in stored.parts[0].types}


def facts(batch):
    """Return what a batch holds, whatever the order of its nodes."""
    nodes = {name: sorted(ids.tolist()) for name, ids in batch.n_id_dict.items()}
    edges = {key: sorted(ids.tolist()) for key, ids in batch.e_id_dict.items()}
    return nodes, edges, batch.num_sampled_nodes_dict, batch.num_sampled_edges_dict


def test_rows_are_those_of_the_vertices(saved):
    stored, features, labels, splits = saved
    first = firsts(stored)
    loader = stored.loader("train", fanouts=[3, 2], batch_size=25)
    assert loader.input == "paper"
    assert len(loader) == 3
    seen = []
    for batch in loader:
        for name in WIDTHS:
            rows = batch.n_id_dict[name].numpy() - first[name]
            assert np.array_equal(batch.x_dict[name].numpy(), features[name][rows])
        seeds = batch.n_id_dict["paper"][: batch.batch_size].numpy() - first["paper"]
        assert np.array_equal(batch.y.numpy(), labels[seeds])
        assert np.array_equal(loader.vertices[batch.input_id.numpy()] - first["paper"], seeds)
        seen += seeds.tolist()
    assert sorted(seen) == sorted(splits["train"].tolist())
    assert seen != sorted(seen)  # those of "train" are shuffled


def test_layers_read_prefixes_with_all_their_edges(saved):
    stored, *_ = saved
    batch = next(iter(stored.loader("val", fanouts=[2, 2, 1], batch_size=16)))
    blocks = batch.blocks()
    assert [block.num_targets["paper"] for block in blocks][-1] == batch.batch_size
    for before, after in pairwise(blocks):
        assert before.num_targets == after.num_sources
    for hop, block in enumerate(reversed(blocks), 1):
        for key, edge_index in block.edge_index_dict.items():
            assert edge_index.shape[1] == sum(batch.num_sampled_edges_dict[key][:hop])
            assert torch.equal(edge_index, batch.edge_index_dict[key][:, : edge_index.shape[1]])
            if edge_index.numel():
                assert edge_index[0].max() < block.num_sources[key[0]]
                assert edge_index[1].max() < block.num_targets[key[2]]


def test_edges_are_those_of_the_graph(saved):
    stored, *_ = saved
    known = {}
    for part in stored.parts:
        for each in part.edge_types:
            sources, targets, ids = part.of_relation(each.name).in_edges()
            of_ids = zip(ids.tolist(), zip(sources.tolist(), targets.tolist(), strict=True), strict=True)
            known.setdefault(each.name, {}).update(of_ids)
    batch = next(iter(stored.loader("train", fanouts=[-1, 3], batch_size=60)))
    for (source, name, target), edge_index in batch.edge_index_dict.items():
        ends = batch.n_id_dict[source][edge_index[0]], batch.n_id_dict[target][edge_index[1]]
        for edge, pair in zip(
            batch.e_id_dict[source, name, target].tolist(), torch.stack(ends, 1).tolist(), strict=True
        ):
            assert known[name][edge] == tuple(pair)


@pytest.mark.parametrize("sampling", ["uniform", "labor"])
def test_batches_are_the_same_for_any_partition_and_ranks(tmp_path, sampling):
    found = []
    for k, ranks in ((1, 1), (2, 2), (4, 3)):
        stored, *_ = typed_parts(tmp_path / str(k), k)
        how = {"fanouts": {"cites": [3, 2], "rev_writes": [2, 2]}, "batch_size": 20, "sampling": sampling}
        of_ranks = [stored.loader("train", rank=rank, world_size=ranks, **how) for rank in range(ranks)]
        steps = []
        for batches in zip(*of_ranks, strict=True):
            seeds = [batch.n_id_dict["paper"][: batch.batch_size].tolist() for batch in batches]
            edges = [ids.tolist() for batch in batches for ids in batch.e_id_dict.values()]
            steps.append((sorted(chain.from_iterable(seeds)), sorted(set(chain.from_iterable(edges)))))
        found.append(steps)
    assert found[0] == found[1] == found[2]


def test_memory_that_is_kept_changes_no_batch(saved):
    stored, *_ = saved
    how = {"fanouts": [3, 2], "batch_size": 30, "rank": 1, "world_size": 2}
    plain = list(stored.loader("train", **how))
    for more in (
        {"cache": 0.5},
        {"resident": 500},
        {"resident": "1M", "cache": 1.0},
        {"io": "direct"},
        {"ahead": 0},
    ):
        loader = stored.loader("train", **how, **more)
        for batch, like in zip(loader, plain, strict=True):
            assert facts(batch) == facts(like)
            for name, x in like.x_dict.items():
                assert torch.equal(batch.x_dict[name], x)
        counts = loader.read_counts()
        assert counts["rows"] > 0
        assert ("cache" in more) == bool(counts.get("cached_rows"))


def test_rows_of_own_parts_and_cached_ones_stay(saved):
    stored, *_ = saved
    how = {"fanouts": [3, 2], "batch_size": 30, "rank": 1, "world_size": 2, "resident": "1M"}
    for cache in (None, 0.5):
        loader, cached = stored.loader("train", cache=cache, **how), 0
        for number, fetching in enumerate(loader.fetching.of_type.values()):
            starts = stored._types.starts[number]
            own = range(starts[2], starts[3])  # rank 1 has the last of three parts
            assert set(fetching.resident.index.ids.tolist()) == {*own, *fetching.cached.ids.tolist()}
            cached += len(fetching.cached.ids)
        assert (cached > 0) == (cache is not None)


def test_types_without_features_have_none(tmp_path):
    stored, *_ = typed_parts(tmp_path, widths={"paper": 4})
    batch = next(iter(stored.loader("train", fanouts=[2], batch_size=60)))
    assert set(batch.x_dict) == {"paper"}
    assert set(batch.n_id_dict) == set(WIDTHS)
    assert not stored.loader("train", fanouts=[2], edge_ids=False).__iter__().__next__().e_id_dict


def test_seeds_may_be_vertices_of_one_type(saved):
    stored, *_ = saved
    authors = np.concatenate([part.of_type("author").inner for part in stored.parts])[::3]
    loader = stored.loader(authors, fanouts=[2], batch_size=8)
    batches = list(loader)
    assert loader.input == "author"
    assert all(batch.y is None for batch in batches)
    ids = np.concatenate([batch.n_id_dict["author"][: batch.batch_size] for batch in batches])
    assert np.array_equal(ids, authors)
    with pytest.raises(
        fp.errors.ParameterError, match="vertices: expected ids of one type, got those of author, paper"
    ):
        stored.loader(np.concatenate([authors, firsts(stored)["paper"] + np.arange(2)]), fanouts=[2])
    with pytest.raises(
        fp.errors.ParameterError, match="vertices: expected ids of 'paper', got those of author"
    ):
        stored.loader(authors, fanouts=[2], input="paper")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"fanouts": {"likes": [2]}}, "fanouts: unknown relation 'likes'"),
        (
            {"fanouts": {"cites": [2], "writes": [2, 2]}},
            "fanouts: expected the same number of hops for each relation",
        ),
        ({"fanouts": {"cites": [2], ("paper", "cites", "paper"): [2]}}, "named twice"),
        ({"fanouts": {}}, "fanouts: expected the same number of hops"),
        (
            {"fanouts": [2], "input": "venue"},
            "input: unknown type 'venue'. The types are author, field, paper",
        ),
        ({"fanouts": [2], "input": "author"}, "vertices: 'author' has no split 'train'"),
        ({"fanouts": [2], "vertices": "other"}, "vertices: no type has a split 'other'"),
    ],
)
def test_what_does_not_fit_is_told(saved, given, message):
    with pytest.raises(fp.errors.ParameterError, match=message):
        saved[0].loader(**{"vertices": "train", **given})


def test_a_graph_without_types_has_no_input(tmp_path):
    ring = np.array([[v, (v + 1) % 6] for v in range(6)])
    fp.VertexPartition([0, 0, 0, 1, 1, 1], 2).save(tmp_path / "parts", graph=ring, splits={"train": [0, 1]})
    stored = fp.open_partition(tmp_path / "parts")
    with pytest.raises(fp.errors.ParameterError, match="input: this graph has no types"):
        stored.loader("train", fanouts=[2], input="paper")


def test_a_batch_becomes_one_of_pyg(saved):
    pytest.importorskip("torch_geometric")
    from torch_geometric.nn import HeteroConv, SAGEConv

    stored, *_ = saved
    batch = next(iter(stored.loader("train", fanouts=[3, 2], batch_size=20)))
    data = batch.hetero_data()
    assert data.validate()
    convolutions = {key: SAGEConv((WIDTHS[key[0]], WIDTHS[key[2]]), 4) for key in batch.edge_index_dict}
    out = HeteroConv(convolutions)(data.x_dict, data.edge_index_dict)
    assert out["paper"].shape == (len(batch.n_id_dict["paper"]), 4)
    assert torch.equal(data["paper"].y, batch.y)
