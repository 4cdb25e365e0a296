"""Samples of LABOR: how often in-edges are taken, together with which others, and that lists share their numbers."""

from itertools import pairwise

import numpy as np
import pytest

import fastpart as fp
from fastpart import _core
from random_typed import typed_graph
from sampled import folders

LISTS = {0: 5000, 1: 700, 2: 300, 3: 40}
"""In-degree of each target. The first three lists have orders."""

N = 6000
FANOUT, STEPS = 8, 3000


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return the lists of the targets, and a topology of one part and of four parts."""
    rng = np.random.default_rng(4)
    lists = {v: 4 + rng.permutation(N - 4)[:d].astype(np.uint32) for v, d in LISTS.items()}
    records = np.concatenate([np.stack([u, np.full_like(u, v)], axis=1) for v, u in lists.items()])
    graph = fp.open_graph(rng.permutation(records), num_vertices=N, directedness="directed")
    topologies = []
    for k in (1, 4):
        root = tmp_path_factory.mktemp("labor") / f"parts-{k}"
        fp.VertexPartition(rng.integers(0, k, N), k).save(root, graph=graph)
        topologies.append(_core.Topology(folders(root)))
    return lists, topologies


def taken(topology, targets, *, fanout=FANOUT, steps=STEPS, seed=1):
    """Return for each step which vertices each target takes, as a bool array (steps, targets, N)."""
    sampler = _core.Sampler(topology, [fanout], kind="labor", seed=seed)
    rows, found = topology.rows_of(np.array(targets)), np.zeros((steps, len(targets), N), bool)
    for step in range(steps):
        batch = sampler.sample(rows, step=step)
        ids = batch.n_id[batch.indices]
        for place, (first, end) in enumerate(pairwise(batch.indptr.tolist())):
            found[step, place, ids[first:end]] = True
    return found


@pytest.fixture(scope="module")
def drawn(stored):
    """Return what each target takes in many batches."""
    return taken(stored[1][0], list(LISTS))


def test_every_in_edge_is_taken_with_its_probability(stored, drawn):
    """Of thousands of in-edges none is beyond five deviations, and few are beyond three."""
    for target, sources in stored[0].items():
        p = FANOUT / len(sources)
        score = (drawn[:, target, sources].sum(axis=0) - STEPS * p) / np.sqrt(STEPS * p * (1 - p))
        assert np.abs(score).max() < 5
        assert (np.abs(score) > 3).mean() < 0.03
        assert abs(score.std() - 1) < 4 / np.sqrt(len(sources))
        assert drawn[:, target].sum() == drawn[:, target, sources].sum()


def test_lists_have_as_many_picks_as_independent_draws_would_give(stored, drawn):
    """The number of picks of a list has the mean and the variance of a binomial distribution."""
    for target, sources in stored[0].items():
        counts, p = drawn[:, target].sum(axis=1), FANOUT / len(sources)
        variance = FANOUT * (1 - p)
        assert abs(counts.mean() - FANOUT) < 4 * np.sqrt(variance / STEPS)
        assert abs(counts.var() / variance - 1) < 0.2


def test_sources_are_not_correlated(stored, drawn):
    """The mean over pairs is zero, and in a short list no pair is far from it."""
    for target, sources in stored[0].items():
        inside = drawn[:, target, sources[:400]].astype(np.float32)
        inside = inside[:, inside.any(axis=0)]
        correlations = np.corrcoef(inside.T)[np.triu_indices(inside.shape[1], 1)]
        assert abs(correlations.mean()) < 4 / np.sqrt(STEPS * len(sources))
        # Vertices with places side by side are taken together: one pair of 512.
        apart = np.abs(correlations) > 0.25
        assert apart.mean() < 0.004
        assert not apart.any() or target != 3


def test_means_of_neighbours_are_unbiased_and_as_exact_as_by_independent_draws(stored, drawn):
    values = np.random.default_rng(8).standard_normal(N)
    for target, sources in stored[0].items():
        p = FANOUT / len(sources)
        means = drawn[:, target] @ values / FANOUT
        variance = (values[sources] ** 2).sum() * p * (1 - p) / FANOUT**2
        assert abs(means.mean() - values[sources].mean()) < 4 * np.sqrt(variance / STEPS)
        assert abs(means.var() / variance - 1) < 0.2


def test_batches_are_independent(drawn):
    """What a step takes says nothing of the next one, nor of that of another epoch or hop."""
    for target in LISTS:
        now, then = drawn[:-1, target], drawn[1:, target]
        both, p = (now & then).sum(axis=1), FANOUT / LISTS[target]
        expected = FANOUT * p
        assert abs(both.mean() - expected) < 4 * np.sqrt(1.3 * expected / STEPS)


@pytest.mark.parametrize("fanout", [1, 8, 30, 200])
def test_lists_of_a_batch_share_their_numbers(stored, fanout):
    """What the longer list takes, the shorter one takes too where it has it: whichever way they are read."""
    lists, (topology, _) = stored
    steps = 1000 if fanout < 10 else 200
    found = taken(topology, list(LISTS), fanout=fanout, steps=steps)
    for longer, shorter in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]:
        of_both = np.intersect1d(lists[longer], lists[shorter])
        assert not (found[:, longer, of_both] & ~found[:, shorter, of_both]).any()
    # So a batch has as many vertices as the greatest probability of each says.
    most = np.zeros(N)
    for target, sources in lists.items():
        most[sources] = np.maximum(most[sources], min(1, fanout / LISTS[target]))
    sizes = found.any(axis=1).sum(axis=1)
    assert abs(sizes.mean() - most.sum()) < 4 * np.sqrt(1.2 * most.sum() / steps)


@pytest.mark.parametrize("fanout", [8, 30])
def test_picks_do_not_depend_on_parts_nor_on_what_was_asked_before(stored, fanout):
    _, topologies = stored
    one, four = (taken(each, list(LISTS), fanout=fanout, steps=50, seed=5) for each in topologies)
    assert (one == four).all()
    for target in LISTS:
        assert (taken(topologies[1], [target], fanout=fanout, steps=50, seed=5)[:, 0] == one[:, target]).all()


def test_in_edges_of_a_list_keep_the_order_of_its_records(stored):
    _, (topology, _) = stored
    whole = _core.Sampler(topology, [-1], edge_ids=True).sample(topology.rows_of(np.array([0])))
    places = {edge: place for place, edge in enumerate(whole.e_id.tolist())}
    sampler = _core.Sampler(topology, [50], kind="labor", edge_ids=True)
    for step in range(20):
        batch = sampler.sample(topology.rows_of(np.array([0])), step=step)
        found = [places[edge] for edge in batch.e_id.tolist()]
        assert found == sorted(found)
        assert batch.n_id[batch.indices].tolist() == whole.n_id[whole.indices][found].tolist()


def test_records_that_occur_twice_are_taken_together():
    records = np.repeat(np.stack([np.arange(1, 401), np.zeros(400, int)], axis=1), 2, axis=0)
    graph = fp.open_graph(records.astype(np.uint32), directedness="directed")
    indptr = np.concatenate([[0], np.full(401, 800)])
    topology = _core.Topology.in_memory(
        np.arange(401), indptr, np.ascontiguousarray(records[:, 0].astype(np.int32))
    )
    assert graph.num_edges == 800
    sampler = _core.Sampler(topology, [10], kind="labor", edge_ids=True)
    for step in range(50):
        edges = sampler.sample(np.zeros(1, np.uint32), step=step).e_id
        assert (edges[::2] + 1 == edges[1::2]).all()


def test_lists_of_relations_are_sampled_alike_in_any_parts(tmp_path):
    """A field has 700 papers, 300 books and 90 talks: runs of in-edges of each length, which share their authors."""
    rng, types = np.random.default_rng(2), {"person": 3000, "field": 3}
    sizes = {"papers": 700, "books": 300, "talks": 90}
    relations = {
        name: ("person", "field", np.stack([rng.integers(0, 3000, 3 * d), np.repeat(range(3), d)], axis=1))
        for name, d in sizes.items()
    }
    graph, found = typed_graph(tmp_path / "graph", types, relations), []
    for k in (1, 2, 4):
        partition = fp.VertexPartition(rng.integers(0, k, graph.num_vertices), k)
        partition.save(tmp_path / f"parts-{k}", graph=graph)
        stored = fp.open_partition(tmp_path / f"parts-{k}", of="vertices")
        fanouts = [[5] * len(stored.parts[0].edge_types)]
        sampler = _core.Sampler(stored._topology, fanouts, types=stored._types, kind="labor", edge_ids=True)
        rows = stored._topology.rows_of(np.arange(3000, 3003))
        batches = [sampler.sample(rows, step=step) for step in range(200)]
        found.append([[sorted(edges.tolist()) for edges in batch.e_id] for batch in batches])
    assert found[0] == found[1] == found[2]
    # Three fields with three lists of five in-edges each.
    assert abs(np.mean([sum(map(len, batch)) for batch in found[0]]) / 45 - 1) < 0.05
