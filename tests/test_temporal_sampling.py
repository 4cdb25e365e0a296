"""Samples of the core that do not look ahead: what they hold, how often, and that nothing but the draw changes them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart import _core
from soaked import examples
from strategies import edge_lists
from temporal import NO_TIME, early, in_edges, latest, save, timed_graph

N = 300


def expected_level(nodes, edges, fanout, strategy, timed_edges):
    """Return the in-edges of each node that a sample has, or must be among, and how many it has."""
    for vertex, time in nodes:
        allowed = early(edges[vertex], time)
        count = min(len(allowed), len(allowed) if fanout < 0 else fanout)
        yield (latest(allowed, count, timed_edges) if strategy == "last" else allowed), count


def check(batch, seeds, fanouts, strategy, edges, timed_edges, merged):
    """Compare a batch with the definition: its levels, and the in-edges of every node."""
    nodes = list(zip(batch.n_id.tolist(), batch.seed_time.tolist(), strict=True))
    levels = np.cumsum([0, *batch.num_sampled_nodes]).tolist()
    assert nodes[: levels[1]] == seeds
    rows = [range(*bounds) for bounds in pairwise(batch.indptr.tolist())]
    known = dict.fromkeys(seeds)
    for hop, fanout in enumerate(fanouts):
        level = slice(levels[hop], levels[hop + 1])
        met = dict(known) if merged else {}
        of_level = expected_level(nodes[level], edges, fanout, strategy, timed_edges)
        for (_, time), row, (among, count) in zip(nodes[level], rows[level], of_level, strict=True):
            found = [(int(batch.n_id[batch.indices[i]]), int(batch.e_id[i])) for i in row]
            assert len(found) == count
            assert [
                edge for edge in [(u, e) for u, e, *_ in among] if edge in found
            ] == found  # in this order
            for i, (source, _) in zip(row, found, strict=True):
                assert nodes[batch.indices[i]] == (source, time)
                met.setdefault((source, time))
        new = list(met)[len(known) :] if merged else list(met)
        assert nodes[levels[hop + 1] : levels[hop + 2]] == new
        known |= met


@examples(10)
@given(edge_lists(max_n=9, max_m=40), st.data())
def test_batches_follow_the_definition(tmp_path_factory, graph, data):
    n, records = graph
    draw = data.draw
    number = st.integers(-3, 3) | st.just(NO_TIME)
    times = draw(st.none() | st.lists(number, min_size=n, max_size=n).map(np.array))
    edge_times = draw(
        st.none() | st.lists(number, min_size=len(records), max_size=len(records)).map(np.array)
    )
    if times is edge_times is None or not len(records):
        return
    stored = save(
        tmp_path_factory.mktemp("parts") / "parts", n, records, draw(st.integers(1, 3)), times, edge_times
    )
    seeds = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(-3, 4)), max_size=6, unique=True))
    fanouts = draw(st.lists(st.sampled_from([-1, 0, 1, 2, 5]), min_size=1, max_size=3))
    strategy, merged = draw(st.sampled_from(["uniform", "last"])), draw(st.booleans())
    how = {"times": stored._times, "temporal": strategy, "merged": merged, "edge_ids": True}
    sampler = _core.Sampler(stored._topology, fanouts, **how)
    rows = stored._topology.rows_of(np.array([v for v, _ in seeds], np.int64))
    batch = sampler.sample(rows, times=np.array([time for _, time in seeds], np.int64))
    edges = in_edges(n, records, times, edge_times)
    check(batch, seeds, fanouts, strategy, edges, edge_times is not None, merged)
    for source, e in zip(batch.indices.tolist(), batch.e_id.tolist(), strict=True):  # said again, in one line
        vertex, time = batch.n_id[source], batch.seed_time[source]
        assert times is None or times[vertex] < time
        assert edge_times is None or edge_times[e % len(records)] < time


@pytest.mark.parametrize("strategy", ["uniform", "last"])
@pytest.mark.parametrize("which", ["vertices", "edges", "both"])
def test_long_lists_follow_the_definition(tmp_path, which, strategy):
    records, times, edge_times = timed_graph(N)
    times, edge_times = None if which == "edges" else times, None if which == "vertices" else edge_times
    stored = save(tmp_path / "parts", N, records, 2, times, edge_times)
    edges = in_edges(N, records, times, edge_times)
    assert max(map(len, edges)) > 500
    seeds = [(v, time) for time in (1, 2, 5, 20, 50, 90, 200) for v in range(0, N, 3)]
    how = {"times": stored._times, "temporal": strategy, "edge_ids": True}
    rows = stored._topology.rows_of(np.array([v for v, _ in seeds], np.int64))
    at = np.array([time for _, time in seeds], np.int64)
    for fanout in (1, 10, 32, 40):
        batch = _core.Sampler(stored._topology, [fanout], **how).sample(rows, times=at)
        check(batch, seeds, [fanout], strategy, edges, edge_times is not None, merged=False)


@pytest.mark.parametrize(("degree", "share"), [(40, 0.5), (400, 0.5), (400, 0.04), (400, 0.005)])
def test_uniform_samples_take_every_early_edge_equally_often(tmp_path, degree, share):
    records = np.stack([np.arange(1, degree + 1), np.zeros(degree, int)], axis=1).astype(np.uint32)
    edge_times = np.random.default_rng(0).permutation(degree)
    stored = save(tmp_path / "parts", degree + 1, records, 1, edge_times=edge_times)
    count, fanout, times = round(share * degree), 5, 3000
    sampler = _core.Sampler(stored._topology, [fanout], times=stored._times, edge_ids=True)
    seed, at = np.zeros(1, np.uint32), np.array([count])
    found = [sampler.sample(seed, times=at, step=step).e_id for step in range(times)]
    counts = np.bincount(np.concatenate(found), minlength=degree)[edge_times < count]
    assert all(len(set(each.tolist())) == min(fanout, count) for each in found)
    p = min(fanout, count) / count
    assert counts.sum() == times * min(fanout, count)
    assert np.abs(counts - times * p).max() <= 5 * np.sqrt(times * p * (1 - p))


def test_batches_are_the_same_for_any_partition_and_threads(tmp_path):
    records, times, edge_times = timed_graph(N)
    ids, at = np.tile(np.arange(0, N, 2), 2), np.repeat([40, 70], N // 2)
    order = np.random.default_rng(1).permutation(N)
    offsets = np.arange(0, N + 1, 25)
    found = []
    for k, ahead, threads in [(1, 0, 1), (2, 2, 1), (4, 4, 3)]:
        stored = save(tmp_path / f"{k}", N, records, k, times, edge_times)
        rows, topology = stored._topology.rows_of(ids), stored._topology
        for strategy in ("uniform", "last"):
            sampler = _core.Sampler(topology, [4, 3], times=stored._times, temporal=strategy, edge_ids=True)
            made = sampler.batches(
                rows[order], offsets, times=at[order], epoch=3, ahead=ahead, threads=threads
            )
            found.append([(b.n_id, b.seed_time, b.indptr, b.indices, b.e_id) for b in made])
    for others in (found[2:4], found[4:]):
        for one, other in zip(found[:2], others, strict=True):
            for a, b in zip(one, other, strict=True):
                assert all(map(np.array_equal, a, b))


def test_a_sample_does_not_depend_on_the_other_seeds(tmp_path):
    records, times, edge_times = timed_graph(N)
    stored = save(tmp_path / "parts", N, records, 2, times, edge_times)
    sampler = _core.Sampler(stored._topology, [4, 3], times=stored._times)
    rows = stored._topology.rows_of(np.arange(40))
    alone = sampler.sample(rows[5:6], times=np.array([50]))
    both = sampler.sample(rows, times=np.arange(45, 85))
    nodes = [
        {(v, t) for v, t in zip(b.n_id.tolist(), b.seed_time.tolist(), strict=True) if t == 50}
        for b in (alone, both)
    ]
    assert nodes[0] == nodes[1]
    assert len(nodes[0]) > 5


def test_the_core_refuses_wrong_seeds_and_files(tmp_path):
    records, times, edge_times = timed_graph(N)
    stored = save(tmp_path / "parts", N, records, 2, times, edge_times)
    topology, rows = stored._topology, np.array([1, 2], np.uint32)
    sampler = _core.Sampler(topology, [2], times=stored._times)
    for at, text in [
        (None, "0 times for 2 seeds"),
        (np.array([1]), "1 times for 2 seeds"),
        (np.array([1, NO_TIME]), "has no time"),
    ]:
        with pytest.raises(fp.errors.ParameterError, match=text):
            sampler.sample(rows, times=at)
    with pytest.raises(fp.errors.ParameterError, match=r"vertex \d+ occurs twice in a batch with the time 7"):
        sampler.sample(rows[[0, 0]], times=np.array([7, 7]))
    assert sampler.sample(rows[[0, 0]], times=np.array([7, 8])).num_sampled_nodes[0] == 2
    with pytest.raises(fp.errors.ParameterError, match="unknown value"):
        _core.Sampler(topology, [2], times=stored._times, temporal="first")
    files = [part.folder / "times.npy" for part in stored.parts]
    with pytest.raises(fp.errors.ParameterError, match="1 files of times, expected 2"):
        _core.Times(topology, files[:1], [None, None])
    with pytest.raises(fp.errors.GraphFormatError, match="times, expected"):
        _core.Times(topology, [None, None], files)
