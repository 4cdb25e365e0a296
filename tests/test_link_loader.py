"""Mini-batches of edges: what is left out, what is drawn, and that ranks and parts do not matter."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fastpart as fp
from fastpart.core.pairs import hashed, mixed
from linked import (
    DIRECTEDNESS,
    dealt,
    either,
    graphs,
    labelled,
    message_pairs,
    random_graph,
    records_of,
    stored,
)

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module", params=DIRECTEDNESS)
def splits(request):
    return fp.split_edges(random_graph(directedness=request.param), 0.1, 0.1, seed=1)


@pytest.fixture(scope="module")
def opened(splits):
    return stored(splits, dealt(60, 3), 3)


def batches_of_ranks(opened, world_size, **given):
    """Return the batches of all ranks, step by step."""
    loaders = [opened.link_loader(**given, rank=rank, world_size=world_size) for rank in range(world_size)]
    return list(zip(*loaders, strict=True))


@settings(max_examples=40)
@given(
    graphs(),
    st.integers(1, 4),
    st.lists(st.sampled_from([-1, 1, 2, 5]), min_size=1, max_size=3),
    st.sampled_from([1, 3, 100]),
    st.sampled_from(["uniform", "batch", "local"]),
    st.booleans(),
    st.integers(0, 9),
)
def test_no_edge_to_predict_is_in_a_message(graph, k, fanouts, batch_size, negatives, merged, seed):
    splits = fp.split_edges(graph, 0.2, 0.2, seed=seed)
    opened = stored(splits, dealt(graph.num_vertices, k, seed), k)
    given = {"fanouts": fanouts, "batch_size": batch_size, "negatives": negatives, "merged": merged}
    world = min(k, 2)
    held = either(splits.val) | either(splits.test)
    edges = either(records_of(splits.graph))
    seen = Counter()
    for ranks in batches_of_ranks(opened, world, **given, seed=seed):
        positives = [pair[:2] for batch in ranks for pair in labelled(batch) if pair[2] == 1]
        assert {len(positives)} == {batch.global_size for batch in ranks}
        seen.update(positives)
        for batch in ranks:
            passed = message_pairs(batch)
            assert not passed & (either(positives) | held)
            assert passed <= edges
    assert set(seen.values()) <= {1}
    loader = opened.link_loader(fanouts=fanouts)
    assert set(seen) == set(map(tuple, loader.edges.tolist()))
    for split in ("val", "test"):
        for batch in opened.link_loader(split, fanouts=[-1], batch_size=5):
            assert not message_pairs(batch) & held


def test_all_other_edges_are_there(splits, opened):
    records = records_of(splits.graph)
    for batch in opened.link_loader(fanouts=[-1], batch_size=30, seed=2):
        positives = either(pair[:2] for pair in labelled(batch) if pair[2] == 1)
        assert positives & either(records)
        into = Counter(batch.n_id[batch.edge_index[1]].tolist())
        for seed in batch.n_id[: batch.num_sampled_nodes[0]].tolist():
            expected = 0
            for u, v in records.tolist():
                if frozenset((u, v)) in positives:
                    continue
                expected += v == seed
                expected += splits.graph.directedness == "undirected" and u == seed != v
            assert into[seed] == expected


def test_what_stays_of_a_batch_fits_together():
    graph = random_graph()
    splits = fp.split_edges(graph, 0.1, 0.1)
    features = np.arange(60, dtype=np.float32)[:, None]
    edge_features = np.arange(splits.graph.num_edges, dtype=np.float32)[:, None]
    opened = stored(splits, dealt(60, 3), 3, features=features, edge_features=edge_features)
    records, m = records_of(splits.graph), splits.graph.num_edges
    for batch in opened.link_loader(fanouts=[3, 2], batch_size=25):
        assert batch.x[:, 0].tolist() == batch.n_id.tolist()
        assert batch.num_edges == sum(batch.num_sampled_edges) == len(batch.e_id)
        assert len(batch.n_id) == sum(batch.num_sampled_nodes)
        blocks = batch.blocks()
        assert [block.num_edges for block in blocks] == np.cumsum(batch.num_sampled_edges)[::-1].tolist()
        ends = batch.n_id[batch.edge_index].T.tolist()
        for pair, edge, attr in zip(ends, batch.e_id.tolist(), batch.edge_attr[:, 0].tolist(), strict=True):
            record = records[edge % m].tolist()
            assert pair == (record if edge < m else record[::-1])
            assert attr == edge % m


@pytest.mark.parametrize("negatives", ["uniform", "batch", "hard", "mixed"])
@pytest.mark.parametrize("sampling", ["uniform", "labor"])
def test_parts_and_ranks_do_not_change_the_batches(splits, opened, negatives, sampling):
    table = np.argwhere(np.arange(60)[:, None] * 7 % 60 == np.arange(60))
    mixed = {"uniform": 2, "degree": 1, "batch": 3, "hard": table}
    of = {"hard": {"uniform": 3, "hard": table}, "mixed": mixed}.get(negatives, {negatives: 3})
    given = {"fanouts": [3, 2], "batch_size": 40, "negatives": of, "sampling": sampling, "seed": 5}

    def content(opened, world_size):
        found = []
        for ranks in batches_of_ranks(opened, world_size, **given):
            pairs = Counter(pair for batch in ranks for pair in labelled(batch))
            hops = [Counter() for _ in given["fanouts"]]
            for batch in ranks:
                ends = np.cumsum([0, *batch.num_sampled_edges])
                edges = batch.n_id[batch.edge_index].T.tolist()
                for hop, (start, stop) in enumerate(pairwise(ends)):
                    hops[hop] |= Counter(map(tuple, edges[start:stop]))
            found.append((pairs, hops))
        return found

    expected = content(opened, 1)
    assert content(opened, 3) == expected
    assert content(stored(splits, np.zeros(60, int), 1), 1) == expected
    assert content(stored(splits, dealt(60, 4, seed=9), 4), 2) == expected


def test_without_negatives_pairs_are_repeated_and_may_be_loops(opened):
    pairs = np.array([[1, 2], [2, 1], [1, 2], [4, 4]])
    (batch,) = opened.link_loader(pairs, negatives=0, fanouts=[-1], batch_size=9)
    ends = batch.n_id[batch.edge_label_index].T.numpy()
    np.testing.assert_array_equal(ends, pairs[batch.input_id])
    assert sorted(batch.input_id.tolist()) == [0, 1, 2, 3]


def test_epochs_and_seeds_differ_and_repeat(opened):
    given = {"fanouts": [2], "batch_size": 64}
    loader = opened.link_loader(**given)
    first, second = ([labelled(batch) for batch in loader] for _ in range(2))
    assert first != second
    again = opened.link_loader(**given)
    again.set_epoch(1)
    assert [labelled(batch) for batch in again] == second
    assert [labelled(batch) for batch in opened.link_loader(**given, seed=1)] != first
    of_test = opened.link_loader("test", **given)
    order = [batch.input_id.tolist() for batch in of_test]
    assert [each for batch in order for each in batch] == list(range(len(of_test.edges)))
    first = labelled(next(iter(of_test)))[: len(order[0])]
    assert of_test.edges[order[0]].tolist() == [list(pair[:2]) for pair in first]


def test_negatives_have_the_source_and_another_target(opened):
    for kind in ("uniform", "batch", "local"):
        for batch in opened.link_loader(fanouts=[1], batch_size=50, negatives={kind: 4}):
            pairs = labelled(batch)
            positives, others = pairs[: batch.batch_size], pairs[batch.batch_size :]
            assert len(others) == 4 * len(positives)
            targets = {target for _, target, _ in positives}
            for place, (source, target, label) in enumerate(others):
                positive = positives[place // 4]
                assert label == 0
                assert source == positive[0]
                assert target not in positive[:2]
            if kind == "batch":
                assert np.mean([target in targets for _, target, _ in others]) > 0.9


def test_hard_negatives_are_targets_of_the_source_in_the_table(opened):
    """Where the table has none, or an end of the edge, a uniform target takes the place."""
    table = np.array([[u, (u * step + 7) % 60] for u in range(0, 60, 2) for step in (3, 5, 11)])
    given = {"fanouts": [1], "batch_size": 50, "seed": 3}
    loaders = [
        opened.link_loader(**given, **more)
        for more in ({}, {"negatives": {"uniform": 1, "hard": table}, "num_hard_negatives": 3})
    ]
    of_source = {u: set(table[table[:, 0] == u, 1].tolist()) for u in range(60)}
    found, odd = set(), set()
    for plain, hard in zip(*loaders, strict=True):
        count = hard.batch_size
        expected, pairs = labelled(plain), labelled(hard)
        negatives = [pairs[count:][start : start + 4] for start in range(0, 4 * count, 4)]
        assert pairs[:count] + [each[0] for each in negatives] == expected
        for (u, v, _), (_, *more) in zip(pairs, negatives, strict=False):
            for source, target, label in more:
                assert (source, label) == (u, 0)
                assert target not in (u, v)
                known = of_source[u] - {u, v}
                (found if target in known else odd).add((u, target))
                if len(known) == 3:
                    assert target in known
    assert len(found) > 60  # most rows of the table
    assert len({u for u, _ in odd if u % 2}) > 20


def test_mixed_negatives_against_a_loop(opened):
    """The kinds stand one after the other, and all follow from the pairs of the step, the seed and the epoch."""
    table = np.array([[u, (u * step + 7) % 60] for u in range(0, 60, 2) for step in (3, 5, 11)])
    mixture = {"hard": table, "batch": 3, "uniform": 2}
    given = {"fanouts": [1], "batch_size": 50, "negatives": mixture, "num_hard_negatives": 4}
    loader = opened.link_loader(**given, seed=5)
    loader.set_epoch(2)
    kinds = Counter()
    for batch in loader:
        step, expected = loader.edges[batch.input_id].tolist(), []
        for place, (u, v) in enumerate(step):
            key = np.array([(u << 32) | v], np.uint64)
            others = [w for w in range(60) if w not in (u, v)]
            known = sorted(target for source, target in table.tolist() if source == u)
            random, of_table = hashed(key, 9, 5, 2)[0], hashed(key, 4, 5, 2, 0x68617264)[0]
            of_batch = [step[(place + 1 + int(r) % (len(step) - 1)) % len(step)][1] for r in random[2:5]]
            hard = [known[int(r) % len(known)] if known else v for r in of_table]
            expected += [others[int(r) % 58] for r in random[:2]]
            for w, r in zip(of_batch + hard, random[2:], strict=True):
                expected.append(others[int(mixed(r)) % 58] if w in (u, v) else w)
                kinds["replaced" if w in (u, v) else "taken"] += 1
        assert [target for _, target, _ in labelled(batch)[len(step) :]] == expected
    assert min(kinds.values()) > 50


def test_uniform_negatives_are_uniform():
    splits = fp.split_edges(np.array([[0, 1], [2, 1], [3, 4]]), 0, 0)
    opened = stored(splits, np.array([0, 0, 0, 1, 1]), 2)
    counts = Counter()
    loader = opened.link_loader(fanouts=[1], negatives=50)
    for epoch in range(40):
        loader.set_epoch(epoch)
        for batch in loader:
            counts.update(pair[:2] for pair in labelled(batch) if pair[2] == 0)
    for source, others in ((0, (2, 3, 4)), (2, (0, 3, 4)), (3, (0, 1, 2))):
        found = [counts[source, target] for target in range(5)]
        assert {target for target in range(5) if found[target]} == set(others)
        np.testing.assert_allclose([found[target] for target in others], 2000 / 3, rtol=0.12)


def test_local_negatives_are_of_the_parts_of_the_rank(opened):
    assignment = dealt(60, 3)
    for rank in range(3):
        loader = opened.link_loader(fanouts=[1], negatives={"local": 5}, rank=rank, world_size=3)
        others = [pair[1] for batch in loader for pair in labelled(batch) if pair[2] == 0]
        assert np.mean(assignment[others] == rank) > 0.9  # the rest replaces ends of the pair itself


def test_a_batch_of_one_edge_has_negatives(opened):
    for batch in opened.link_loader(fanouts=[1], batch_size=1, negatives="batch"):
        (source, target, _), (other, negative, label) = labelled(batch)
        assert (other, label) == (source, 0)
        assert negative not in (source, target)


def test_pairs_of_ones_own_without_negatives(opened):
    pairs = np.array([[5, 2], [3, 8], [2, 5]])
    loader = opened.link_loader(pairs, fanouts=[-1], negatives=0)
    (batch,) = loader
    assert labelled(batch) == [(5, 2, 1.0), (3, 8, 1.0), (2, 5, 1.0)]
    assert repr(loader).startswith("<LinkLoader: 3 edges in 1 steps of 1000, fanouts [-1]")
    assert repr(batch).startswith("<LinkBatch: 3 of 3 edges, 3 pairs, ")
    moved = batch.to("cpu")
    assert torch.equal(moved.edge_label_index, batch.edge_label_index)


def test_a_cache_and_resident_rows_change_nothing():
    splits = fp.split_edges(random_graph(), 0.1, 0.1)
    features = np.random.default_rng(0).random((60, 3)).astype(np.float32)
    opened = stored(splits, dealt(60, 3), 3, features=features)
    given = {"fanouts": [3, 2], "batch_size": 32, "rank": 0, "world_size": 3}
    expected = list(opened.link_loader(**given))
    found = list(opened.link_loader(**given, cache=0.5, resident="1K"))
    for one, other in zip(expected, found, strict=True):
        assert torch.equal(one.x, other.x)
        assert labelled(one) == labelled(other)


@pytest.mark.parametrize(
    ("edges", "given", "error", "message"),
    [
        (
            "val2",
            {},
            fp.errors.ParameterError,
            "edges: the directory has no edge split 'val2'. It has 'train', 'val', 'test'",
        ),
        ([[0, 99]], {}, fp.errors.ParameterError, r"edges: \[0, 99\] is not between 0 and 59"),
        ([[4, 4]], {}, fp.errors.ParameterError, r"edges: \[4, 4\] is a loop"),
        ([[4, 5], [1, 2], [4, 5]], {}, fp.errors.ParameterError, r"edges: \[4, 5\] occurs more than once"),
        ([1, 2], {}, TypeError, "edges: expected 'train', 'val', 'test' or pairs of ids"),
        ("train", {"negatives": "hard"}, fp.errors.ParameterError, "negatives: unknown value 'hard'"),
        ("train", {"negatives": -1}, fp.errors.ParameterError, "negatives: -1"),
        ("train", {"negatives": {"batch": -1}}, fp.errors.ParameterError, "negatives: batch: -1"),
        ("train", {"negatives": {"uniform": "all"}}, TypeError, "negatives: uniform: expected an integer"),
        ("train", {"negatives": {"bach": 1}}, fp.errors.ParameterError, "Did you mean 'batch'"),
        (
            "train",
            {"negatives": {"hard": [[0, 60]]}},
            fp.errors.ParameterError,
            r"negatives: hard: \[0, 60\] is not between",
        ),
        ("train", {"negatives": {"hard": [0]}}, TypeError, "negatives: hard: expected pairs of ids"),
    ],
)
def test_refusals(opened, edges, given, error, message):
    with pytest.raises(error, match=message):
        opened.link_loader(edges, fanouts=[1], **given)


def test_directories_that_have_no_splits_or_no_negatives(tmp_path):
    p = fp.VertexPartition([0, 1], 2)
    p.save(tmp_path / "parts", graph=np.array([[0, 1], [1, 0]]))
    opened = fp.open_partition(tmp_path / "parts")
    with pytest.raises(
        fp.errors.ParameterError, match=r"It has none\. Split the edges with split_edges before"
    ):
        opened.link_loader(fanouts=[1], negatives=0)
    with pytest.raises(fp.errors.ParameterError, match="negatives: 2 vertices have no negatives"):
        opened.link_loader([[0, 1]], fanouts=[1])


def test_negatives_by_degree_have_its_distribution():
    from fastpart.loading.negatives import ByDegree

    ends, random = np.repeat([11, 12, 14, 3, 20], [1, 16, 81, 7, 9]), np.arange(200_000, dtype=np.uint64)
    found = ByDegree(ends, range(10, 15)).of(mixed(random))
    shares = np.bincount(found - 10, minlength=5) / len(found)
    assert shares == pytest.approx(np.array([0, 1, 8, 0, 27]) / 36, abs=0.005)
    assert shares[0] == shares[3] == 0
