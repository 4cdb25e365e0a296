"""The sampler of typed graphs: what a batch holds by definition, for any partition."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart import _core
from random_typed import random_typed_graph
from soaked import examples
from typed_graphs import authors, typed_graphs


def rows_of(stored, ids):
    return stored._topology.rows_of(np.asarray(ids, np.int64))


def sampler(stored, fanouts, **how):
    return _core.Sampler(stored._topology, fanouts, types=stored._types, **{"edge_ids": True, **how})


def edges_of(batch, typed):
    """Return the in-edges of a batch as (hop, relation, target, source, id), by ids of vertices."""
    names, found = [name for name, _ in typed.types], []
    for number, (_, source, target) in enumerate(typed.edge_types):
        sources, targets = batch.n_id[names.index(source)], batch.n_id[names.index(target)]
        indptr, edge = batch.indptr[number], 0
        hops = np.repeat(np.arange(len(batch.num_sampled_edges[number])), batch.num_sampled_edges[number])
        for place in range(len(indptr) - 1):
            for edge in range(indptr[place], indptr[place + 1]):
                source_id = int(sources[batch.indices[number][edge]])
                found.append(
                    (int(hops[edge]), number, int(targets[place]), source_id, int(batch.e_id[number][edge]))
                )
    return found


def check(batch, typed, seeds, fanouts):
    """Check a layered batch against its definition."""
    levels, level = [], list(seeds)
    found = edges_of(batch, typed)
    for hop, of_relation in enumerate(fanouts):
        levels.append(level)
        of_hop = [edge for edge in found if edge[0] == hop]
        there = {}
        for number, _, edge_id, source, target in typed.edges():
            if target in level:
                there.setdefault((number, target), []).append((source, edge_id))
        taken = Counter((number, target) for _, number, target, _, _ in of_hop)
        for (number, target), edges in there.items():
            fanout = of_relation[number]
            assert taken.pop((number, target), 0) == (len(edges) if fanout < 0 else min(fanout, len(edges)))
            got = [edge[3:] for edge in of_hop if edge[1:3] == (number, target)]
            assert len(set(got)) == len(got)
            assert set(got) <= set(edges)
        assert not taken
        level = sorted({source for _, _, _, source, _ in of_hop})
    levels.append(level)
    for number, (name, _) in enumerate(typed.types):
        counts, ids = batch.num_sampled_nodes[number], batch.n_id[number].tolist()
        expected = [[v for v in level if v in typed.range_of(name)] for level in levels]
        assert counts == list(map(len, expected))
        starts = np.cumsum([0, *counts])
        for place, of_level in enumerate(expected):
            assert sorted(ids[starts[place] : starts[place + 1]]) == sorted(of_level)


@examples(15)
@given(data=st.data())
def test_a_batch_is_that_of_the_definition(data, tmp_path_factory):
    typed = data.draw(typed_graphs())
    stored = typed.saved(tmp_path_factory.mktemp("typed"))
    seeds = data.draw(st.lists(st.integers(0, max(typed.n - 1, 0)), unique=True, max_size=typed.n))
    of_hop = st.lists(st.integers(-1, 3), min_size=len(typed.edge_types), max_size=len(typed.edge_types))
    fanouts = data.draw(st.lists(of_hop, max_size=3))
    batch = sampler(stored, fanouts, seed=3).sample(rows_of(stored, seeds), epoch=1, step=2)
    check(batch, typed, seeds, fanouts)
    for number, starts in enumerate(stored._types.starts):
        name = typed.types[number][0]
        rows = np.concatenate([part.of_type(name).inner for part in stored.parts])
        assert starts.tolist() == [0, *np.cumsum([part.of_type(name).num_inner for part in stored.parts])]
        assert np.array_equal(rows[batch.rows[number]], batch.n_id[number])


KINDS = ["uniform", "weighted", "labor"]


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_samples_are_the_same_for_all_partitions(kind, merged, tmp_path):
    graph = random_typed_graph(tmp_path, 5, scale=4)
    facts = []
    weights = np.random.default_rng(0).random(graph.num_edges) if kind == "weighted" else None
    for k, fanout in ((1, 2), (3, 2), (4, 2)):
        parts = fp.VertexPartition(np.random.default_rng(k).integers(0, k, graph.num_vertices), k)
        parts.save(tmp_path / f"parts-{k}", graph=graph)
        stored = fp.open_partition(tmp_path / f"parts-{k}")
        relations = len(stored.parts[0].edge_types)
        how = {"kind": kind, "merged": merged, "weights": weights, "seed": 7}
        seeds = np.arange(0, graph.num_vertices, 5)
        batch = sampler(stored, [[fanout] * relations] * 2, **how).sample(rows_of(stored, seeds), step=4)
        facts.append(
            [
                *(sorted(ids.tolist()) for ids in batch.n_id),
                *(sorted(ids.tolist()) for ids in batch.e_id),
                batch.num_sampled_nodes,
                batch.num_sampled_edges,
            ]
        )
    if merged:  # a vertex that several others reach is new in the level that reaches it first
        facts = [each[:-2] for each in facts]
    assert facts[0] == facts[1] == facts[2]


def test_draws_of_relations_do_not_depend_on_each_other(tmp_path):
    graph = random_typed_graph(tmp_path, 1, scale=4)
    fp.VertexPartition(np.zeros(graph.num_vertices, int), 1).save(tmp_path / "parts", graph=graph)
    stored = fp.open_partition(tmp_path / "parts")
    relations, rows = len(stored.parts[0].edge_types), np.arange(graph.num_vertices, dtype=np.uint32)
    every = sampler(stored, [[2] * relations]).sample(rows)
    for number in range(relations):
        alone = sampler(stored, [[2 if each == number else 0 for each in range(relations)]]).sample(rows)
        assert np.array_equal(np.sort(alone.e_id[number]), np.sort(every.e_id[number]))
        assert sum(map(len, alone.e_id)) == len(alone.e_id[number])


def test_threads_ahead_make_the_same_batches(tmp_path):
    stored = authors().saved(tmp_path)
    relations = len(stored.parts[0].edge_types)
    of = sampler(stored, [[-1] * relations, [1] * relations])
    seeds, offsets = np.arange(9, dtype=np.uint32), np.array([0, 4, 4, 9])
    expected = [of.sample(seeds[a:b], step=i) for i, (a, b) in enumerate([(0, 4), (4, 4), (4, 9)])]
    for ahead, threads in ((0, 1), (2, 2)):
        made = list(of.batches(seeds, offsets, ahead=ahead, threads=threads))
        assert len(made) == 3
        for batch, like in zip(made, expected, strict=True):
            for name in ("rows", "n_id", "indptr", "indices", "e_id"):
                pairs = zip(getattr(batch, name), getattr(like, name), strict=True)
                assert all(np.array_equal(one, other) for one, other in pairs)


def test_damaged_relations_are_told(tmp_path):
    stored = authors().saved(tmp_path)
    file = stored.folder / "part-00000" / "relations.npy"
    relations = np.load(file)
    for wrong, message in (
        (relations[::-1], "relations"),
        (relations[:-1], "in-edges"),
        (relations * 0, "types"),
    ):
        np.save(file, wrong)
        again = fp.open_partition(stored.folder)
        with pytest.raises(fp.errors.GraphFormatError, match=message):
            sampler(again, [[-1] * len(stored.parts[0].edge_types)] * 2).sample(np.arange(9, dtype=np.uint32))


def test_fanouts_are_checked(tmp_path):
    stored = authors().saved(tmp_path)
    with pytest.raises(fp.errors.ParameterError, match="fanouts: 2 numbers for a hop of 8 relations"):
        sampler(stored, [[1, 2]])
    with pytest.raises(fp.errors.ParameterError, match="twice"):
        sampler(stored, [[1] * 8]).sample(np.zeros(2, np.uint32))
