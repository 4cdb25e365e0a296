"""Features of in-edges in batches of typed graphs: those of the record of each, by relation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpart as fp
from random_typed import typed_graph
from typed_graphs import authors, typed_graphs
from typed_training import typed_parts

torch = pytest.importorskip("torch")

from fastpart.core.cache_size import CacheSize  # noqa: E402
from fastpart.loading import row_files as module  # noqa: E402
from fastpart.loading.edge_rows import cached_edge_rows_of  # noqa: E402
from fastpart.loading.row_files import relations_with_features  # noqa: E402
from fastpart.measures.accesses import Epoch  # noqa: E402
from fastpart.partitions.seeds import owner_of, seeds_of  # noqa: E402
from fastpart.partitions.types import (  # noqa: E402
    edge_keys,
    in_edges_of,
    of_relation,
    relation_fanouts,
)

pytestmark = pytest.mark.usefixtures("one_thread")


class Weighed(torch.nn.Module):
    """The sum of the features of the in-edges of a paper."""

    def __init__(self, task, options):
        super().__init__()
        self.linear = torch.nn.Linear(2, task.classes)

    def forward(self, x_dict, edge_index_dict, edge_attr_dict):
        writes = ("author", "writes", "paper")
        x = edge_attr_dict[writes].new_zeros(len(x_dict["paper"]), 2)
        return self.linear(x.index_add(0, edge_index_dict[writes][1], edge_attr_dict[writes]))


def features_of(graph):
    """Return features of the records of each relation but the first: the number of the record, and its negative."""
    found, first = {}, 0
    for name, *_, pairs in graph.relations:
        numbers = np.arange(first, first + len(pairs), dtype=np.float32)
        found[name], first = np.stack([numbers, -numbers], 1), first + len(pairs)
    del found[graph.relations[0][0]]
    return found


def check(graph, stored, fanout):
    features, seen = features_of(graph), 0
    for name, size in graph.types:
        loader = stored.loader(
            np.array(graph.range_of(name), np.int64), fanouts=[fanout, 2], input=name, batch_size=max(size, 1)
        )
        counted = 0
        for batch in loader:
            counted += sum(len(np.unique(batch.e_id_dict[key])) for key in batch.edge_attr_dict)
            assert {key[1].removeprefix("rev_") for key in batch.edge_attr_dict} == set(features)
            for key, rows in batch.edge_attr_dict.items():
                records = batch.e_id_dict[key] % max(graph.m, 1)
                assert rows.tolist() == torch.stack([records, -records], 1).tolist()
                seen += len(rows)
        assert loader.read_counts().get("edge_rows", 0) == counted
    return seen


@settings(max_examples=15, deadline=None)
@given(typed_graphs(), st.integers(1, 2), st.sampled_from([-1, 1]))
def test_rows_are_those_of_the_records(tmp_path_factory, graph, hops, fanout):
    folder = tmp_path_factory.mktemp("typed")
    stored = graph.saved(folder, edge_features=features_of(graph) or None, halo_hops=hops)
    check(graph, stored, fanout)


def test_parts_are_counted_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_EDGES", 2)
    graph = authors()
    assert check(graph, graph.saved(tmp_path, edge_features=features_of(graph)), -1) > 20


def test_without_ids_there_are_none(tmp_path):
    graph = authors()
    stored = graph.saved(tmp_path, edge_features=features_of(graph))
    ids = np.array(graph.range_of("paper"))
    (batch,) = stored.loader(ids, fanouts=[-1], batch_size=9, edge_ids=False)
    assert batch.edge_attr_dict == {}
    (tmp_path / "plain").mkdir()
    (batch,) = graph.saved(tmp_path / "plain").loader(ids, fanouts=[-1], batch_size=9)
    assert batch.edge_attr_dict == {}


@pytest.mark.parametrize("size", [0.3, "2K"])
def test_cached_in_edges_are_all_those_of_a_relation_at_a_vertex(tmp_path, size):
    rng, sizes = np.random.default_rng(0), {"cites": 600, "writes": 480}
    widths = {"cites": 2, "writes": 5}
    rows = {name: rng.standard_normal((m, widths[name])).astype(np.float32) for name, m in sizes.items()}
    stored, *_ = typed_parts(tmp_path, 4, edge_features=rows)
    own, keys, relations = np.arange(4) < 2, edge_keys(stored), relations_with_features(stored)

    def cached(fanouts):
        seeds = seeds_of("train", stored, "paper").rows
        epoch = Epoch(seeds, relation_fanouts(fanouts, keys), 20, stored._types)
        return cached_edge_rows_of(stored, own, CacheSize.of(size), epoch, relations)

    held, limit, of_size = 0, 0, isinstance(size, str)
    found = cached([4, 3])
    assert set(found) == set(relations)
    for key, of_key in found.items():
        files = relations[key].files
        assert (np.diff(of_key) > 0).all()
        owners = owner_of(of_key, files.starts)
        assert not own[owners].any()
        weight = 4 * widths[key[1].removeprefix("rev_")] if of_size else 1
        held += weight * len(of_key)
        limit += int(files.starts[2])  # of own parts
        for part in np.unique(owners).tolist():
            targets, counts, _ = in_edges_of(stored.parts[part], of_relation(stored, key[1])[part])
            places = of_key[owners == part] - files.starts[part]
            of_target = np.repeat(targets, counts)
            assert np.array_equal(places, np.flatnonzero(np.isin(of_target, of_target[places])))
    assert 0 < held <= (2 * 2048 if of_size else size * limit)
    assert all(len(of_key) == 0 for of_key in cached([4]).values())
    only = cached({"cites": [4, 3]})
    assert [key for key, of_key in only.items() if len(of_key)] == [("paper", "cites", "paper")]


def test_models_train_with_them(tmp_path):
    """The features of the in-edges of a paper tell its label, and nothing else does."""
    rng = np.random.default_rng(0)
    papers, writers = (rng.permutation(np.arange(60).repeat(2)) for _ in range(2))
    kinds = rng.integers(0, 2, 60)
    relations = {"writes": ("author", "paper", np.stack([writers, papers], 1))}
    graph = typed_graph(tmp_path / "g", {"author": 60, "paper": 60}, relations)
    parts = fp.VertexPartition(rng.integers(0, 2, 120), 2)
    parts.save(
        tmp_path / "parts",
        graph=graph,
        features={name: np.ones((60, 1), np.float32) for name in ("author", "paper")},
        labels={"paper": kinds},
        splits={"paper": {"train": np.arange(40), "val": np.arange(40, 50), "test": np.arange(50, 60)}},
        edge_features={"writes": np.stack([kinds[papers], 1 - kinds[papers]], 1).astype(np.float32)},
    )
    given = {"fanouts": {"writes": [-1]}, "layers": 1, "dropout": 0.0, "workers": 1, "epochs": 30, "lr": 0.05}
    run = fp.train.sampled(tmp_path / "parts", model=Weighed, **given)
    assert run.summary["test_accuracy"] == 1
    assert run.predict(tmp_path / "parts").tolist() == kinds.tolist()
    few = {**given, "epochs": 2, "hidden": 4}
    attention = fp.train.sampled(tmp_path / "parts", model="rgat", scores="sampled", **few)
    assert attention.history["loss"].is_finite().all()
    scheduled = fp.train.bytegnn(tmp_path / "parts", model="rgat", scores="sampled", **few)
    assert scheduled.history["loss"].to_list() == attention.history["loss"].to_list()
