"""Batches of the core: what they hold, how often each in-edge is drawn, and that nothing but the draw changes them."""

import gc
import os
import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart import _core
from sampled import folders, hubs, opened, store
from soaked import examples
from strategies import edge_lists

KINDS = ["uniform", "weighted", "labor"]


def saved(root, n, records, parts, k, features=None, directedness="undirected", halo_hops=1):
    """Save a partition, and map what is sampled of it."""
    graph = fp.open_graph(records, num_vertices=n, directedness=directedness)
    fp.VertexPartition(parts, k).save(root, graph=graph, features=features, halo_hops=halo_hops)
    return _core.Topology(folders(root))


def in_edges(n, records, directedness="undirected"):
    """Return [(source, edge id)] of each vertex, in the order of the records."""
    found = [[] for _ in range(n)]
    for r, (u, v) in enumerate(np.asarray(records).tolist()):
        found[v].append((u, r))
        if directedness == "undirected" and u != v:
            found[u].append((v, len(records) + r))
    return found


def rows_of(batch):
    """Return [(source, edge id)] of each row, with the places of the sources."""
    items = zip(batch.n_id[batch.indices].tolist(), batch.e_id.tolist(), batch.indices.tolist(), strict=True)
    items = list(items)
    return [items[start:stop] for start, stop in pairwise(batch.indptr.tolist())]


def check(batch, expected, seeds, fanouts, kind, merged):
    """Compare a batch with the definition."""
    levels = np.cumsum([0, *batch.num_sampled_nodes]).tolist()
    assert len(levels) == len(fanouts) + 2
    assert levels[-1] == len(batch.n_id) == len(batch.rows)
    assert batch.n_id[: len(seeds)].tolist() == seeds
    assert len(batch.indptr) == levels[-2] + 1
    rows = rows_of(batch)
    for h, fanout in enumerate(fanouts):
        met = [] if not merged else batch.n_id[: levels[h + 1]].tolist()
        for v, row in zip(
            batch.n_id[levels[h] : levels[h + 1]].tolist(), rows[levels[h] : levels[h + 1]], strict=True
        ):
            found, edges = [(u, e) for u, e, _ in row], expected[v]
            assert len(set(found)) == len(found)
            assert set(found) <= set(edges)
            if fanout == -1 or len(edges) <= fanout:
                assert found == edges
            elif kind != "labor":
                assert len(found) == fanout
            for u, _, place in row:
                assert merged or levels[h + 1] <= place < levels[h + 2]
                met += [u] if u not in met else []
        fresh = batch.n_id[levels[h + 1] : levels[h + 2]].tolist()
        assert fresh == (met[levels[h + 1] :] if merged else met)
        assert batch.num_sampled_edges[h] == sum(map(len, rows[levels[h] : levels[h + 1]]))
    assert len(set(batch.n_id.tolist())) == len(batch.n_id) or not merged


def facts(batch):
    """Return all that a batch says of the graph, whatever the partition."""
    arrays = (batch.n_id, batch.indptr, batch.indices, batch.e_id)
    lists = (batch.num_sampled_nodes, batch.num_sampled_edges)
    return [None if array is None else array.tolist() for array in arrays], lists


@examples(15)
@given(data=st.data())
def test_a_batch_is_that_of_the_definition(data, tmp_path_factory):
    n, records = data.draw(edge_lists(14, 60))
    directedness = data.draw(st.sampled_from(["undirected", "directed"]))
    kind, merged = data.draw(st.sampled_from(KINDS)), data.draw(st.booleans())
    fanouts = data.draw(st.lists(st.sampled_from([-1, 0, 1, 2, 3, 70]), max_size=3))
    seeds = data.draw(st.lists(st.integers(0, n - 1), unique=True, max_size=n)) if n else []
    weights = np.ones(len(records)) if kind == "weighted" else None
    batches = []
    for k in (1, 2, 5):
        parts = data.draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
        root = tmp_path_factory.mktemp("parts") / "parts"
        topology = saved(root, n, records, parts, k, directedness=directedness, halo_hops=1 + k % 2)
        if k == 5:
            # As older versions wrote it.
            for folder in folders(root):
                (folder / "halo_rows.npy").unlink()
            topology = _core.Topology(folders(root))
        rows = topology.rows_of(np.array(seeds, np.int64))
        assert topology.ids_of(rows).tolist() == seeds
        sampler = _core.Sampler(
            topology, fanouts, kind=kind, seed=7, merged=merged, edge_ids=True, weights=weights
        )
        batch = sampler.sample(rows, epoch=2, step=3)
        assert batch.rows.dtype == np.uint32
        assert batch.indptr.dtype == batch.indices.dtype == np.int32
        assert topology.ids_of(batch.rows).tolist() == batch.n_id.tolist()
        check(batch, in_edges(n, records, directedness), seeds, fanouts, kind, merged)
        batches.append(facts(batch))
        subgraph = topology.subgraph(rows, edge_ids=True)
        inside = [[(u, e) for u, e in in_edges(n, records, directedness)[v] if u in seeds] for v in seeds]
        assert [[(u, e) for u, e, _ in row] for row in rows_of(subgraph)] == inside
        assert subgraph.n_id.tolist() == seeds
        assert subgraph.num_sampled_edges == [sum(map(len, inside))]
    assert batches[0] == batches[1] == batches[2]


@pytest.fixture(scope="module")
def graph():
    return hubs()


@pytest.fixture(scope="module")
def stored(graph, tmp_path_factory):
    return store(graph, tmp_path_factory.mktemp("stored"))


PARTITIONS = ["one", "random", "spring", "empty"]


def epoch_of(stored, name, *, kind="uniform", fanouts=(5, 4), merged=False, **how):
    topology, features = opened(stored, name)
    sampler = _core.Sampler(topology, fanouts, kind=kind, seed=3, merged=merged, edge_ids=True)
    seeds = topology.rows_of(np.random.default_rng(1).permutation(3000)[:700].astype(np.int64))
    offsets = np.array([0, 100, 100, 300, 310, 700])
    with_features = how.pop("with_features", True)
    batches = sampler.batches(seeds, offsets, features=features if with_features else None, **how)
    return [(facts(batch), None if batch.features is None else batch.features.copy()) for batch in batches]


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("kind", ["uniform", "labor"])
def test_batches_are_the_same_for_all_partitions_and_threads(graph, stored, kind, merged):
    _, _, features = graph
    reference = epoch_of(stored, "one", kind=kind, merged=merged, epoch=4, ahead=0)
    assert len(reference) == 5
    for (arrays, _), gathered in reference:
        assert np.array_equal(gathered, features[arrays[0]])
    for name, ahead, threads in zip(PARTITIONS, (1, 2, 3, 9), (1, 2, 3, 2), strict=True):
        batches = epoch_of(stored, name, kind=kind, merged=merged, epoch=4, ahead=ahead, threads=threads)
        assert [known for known, _ in batches] == [known for known, _ in reference]
        assert all(np.array_equal(a, b) for (_, a), (_, b) in zip(batches, reference, strict=True))
    other = epoch_of(stored, "one", kind=kind, merged=merged, epoch=5, ahead=0)
    assert [known for known, _ in other] != [known for known, _ in reference]


def test_a_vertex_draws_the_same_whoever_asks(graph, stored):
    """In the layered batches of two workers, a vertex of the same level has the same in-edges."""
    topology, _ = opened(stored, "random")
    sampler = _core.Sampler(topology, [4, 4], seed=1, edge_ids=True)
    rows = np.arange(topology.num_vertices, dtype=np.uint32)
    found = {}
    for seeds in (rows[:900], rows[500:1500], rows[2000:]):
        batch = sampler.sample(seeds, step=6)
        levels = np.cumsum([0, *batch.num_sampled_nodes])
        row = rows_of(batch)
        for h in (0, 1):
            for i in range(levels[h], levels[h + 1]):
                key, drawn = (h, batch.n_id[i]), [(u, e) for u, e, _ in row[i]]
                assert found.setdefault(key, drawn) == drawn
    assert len(found) > 4000


def counts(stored, kind, *, fanout, steps, weights=None, n_id=0, name="random"):
    """Return how often each in-edge of a vertex is drawn, by its position."""
    topology, _ = opened(stored, name)
    sampler = _core.Sampler(topology, [fanout], kind=kind, seed=11, edge_ids=True, weights=weights)
    full = _core.Sampler(topology, [-1], edge_ids=True).sample(topology.rows_of(np.array([n_id]))).e_id
    drawn = np.zeros(len(full), int)
    for step in range(steps):
        batch = sampler.sample(topology.rows_of(np.array([n_id])), step=step)
        drawn += np.isin(full, batch.e_id)
    return full, drawn


def of_degree(graph, low, high):
    """Return a vertex with so many in-edges, and no loop."""
    n, records, _ = graph
    edges = in_edges(n, records)
    return next(v for v in range(n) if low <= len(edges[v]) <= high and all(u != v for u, _ in edges[v]))


@pytest.mark.parametrize("fanout", [1, 7, 70])
def test_uniform_samples_are_uniform(graph, stored, fanout):
    v = of_degree(graph, 80, 100) if fanout == 70 else of_degree(graph, 15, 20)
    steps = 3000
    _, drawn = counts(stored, "uniform", fanout=fanout, steps=steps, n_id=v)
    assert drawn.sum() == fanout * steps
    p = fanout / len(drawn)
    # Of draws without replacement: chi-square with one degree of freedom less than there are in-edges.
    chi = ((drawn - steps * p) ** 2).sum() / (steps * p * (1 - p)) * (len(drawn) - 1) / len(drawn)
    assert abs(chi - (len(drawn) - 1)) < 4 * np.sqrt(2 * (len(drawn) - 1))


def test_weighted_samples_follow_the_weights(graph, stored):
    _, records, _ = graph
    v, steps = of_degree(graph, 15, 20), 4000
    weights = np.random.default_rng(5).integers(0, 5, len(records)).astype(np.float32)
    full, drawn = counts(stored, "weighted", fanout=1, steps=steps, weights=weights, n_id=v)
    expected = weights[full % len(records)].astype(float)
    assert (expected == 0).any()
    assert (drawn[expected == 0] == 0).all()
    expected *= steps / expected.sum()
    positive = expected > 0
    chi = ((drawn - expected)[positive] ** 2 / expected[positive]).sum()
    assert abs(chi - (positive.sum() - 1)) < 4 * np.sqrt(2 * (positive.sum() - 1))
    # Two draws: the second one among what the first one left.
    _, drawn = counts(stored, "weighted", fanout=2, steps=steps, weights=weights.astype(float), n_id=v)
    share = expected / expected.sum()
    rest = 1 - share
    twice = share + share * np.array(
        [(share[rest < 1] / rest[rest < 1]).sum() - s / r for s, r in zip(share, rest, strict=True)]
    )
    assert abs(drawn / steps - twice).max() < 4 * np.sqrt(0.25 / steps)


def test_labor_takes_the_fanout_on_average_and_fewer_vertices(graph, stored):
    v = of_degree(graph, 80, 100)
    _, drawn = counts(stored, "labor", fanout=10, steps=2000, n_id=v)
    assert abs(drawn.sum() / 2000 - 10) < 0.3
    assert abs(drawn / 2000 - 10 / len(drawn)).max() < 0.035
    uniform, labor = (
        epoch_of(stored, "spring", kind=kind, with_features=False) for kind in ("uniform", "labor")
    )
    nodes = [sum(sum(sizes[0]) for (_, sizes), _ in batches) for batches in (uniform, labor)]
    edges = [sum(sizes[1][0] for (_, sizes), _ in batches) for batches in (uniform, labor)]
    assert nodes[1] < 0.9 * nodes[0]
    assert abs(edges[1] / edges[0] - 1) < 0.1


def test_labor_of_many_vertices_or_of_one(graph, stored):
    """Places of long lists are read when they are asked for first, whoever asks."""
    for name in ("one", "random"):
        topology, _ = opened(stored, name)
        sampler = _core.Sampler(topology, [2], kind="labor", seed=2, edge_ids=True)
        rows = np.arange(topology.num_vertices, dtype=np.uint32)
        whole = [[e for _, e, _ in row] for row in rows_of(sampler.sample(rows, step=1))]
        single = [sampler.sample(rows[i : i + 1], step=1).e_id.tolist() for i in range(0, len(rows), 7)]
        assert whole[::7] == single


def test_walks_follow_in_edges(graph, stored):
    n, records, _ = graph
    edges = [{u for u, _ in row} for row in in_edges(n, records)]
    seen = []
    for name in PARTITIONS:
        topology, _ = opened(stored, name)
        walks = topology.walks(topology.rows_of(np.arange(0, n, 7)), 6, seed=1, step=2)
        assert walks.shape == (len(range(0, n, 7)), 7)
        visited = topology.ids_of(walks.ravel()).reshape(walks.shape)
        assert visited[:, 0].tolist() == list(range(0, n, 7))
        for walk in visited.tolist():
            assert all(v in edges[u] or (u == v and not edges[u]) for u, v in pairwise(walk))
        seen.append(visited.tolist())
    assert seen[0] == seen[1] == seen[2] == seen[3]
    assert topology.walks(np.array([], np.uint32), 3, seed=0).shape == (0, 4)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "uint8", "int8", "int64", "bool"])
@pytest.mark.parametrize("shape", [(1,), (3,), (2, 3), (700,)])
def test_features_are_those_of_the_rows(dtype, shape, tmp_path):
    n = 50
    features = np.random.default_rng(1).integers(0, 100, (n, *shape)).astype(dtype)
    parts = np.arange(n) % 3
    topology = saved(tmp_path / "parts", n, [[0, 1]], parts, 3, features)
    files = [folder / "features.npy" for folder in folders(tmp_path / "parts")]
    ids = np.random.default_rng(2).integers(0, n, 300)
    rows = topology.rows_of(ids)
    opened = _core.Features(files, topology)
    assert opened.dtype == np.dtype(dtype)
    assert opened.row_shape == shape
    gathered = opened.gather(rows)
    assert gathered.dtype == np.dtype(dtype)
    assert gathered.flags.writeable
    assert np.array_equal(gathered, features[ids])
    out = np.empty_like(gathered)
    assert opened.gather(rows, out=out) is out
    assert np.array_equal(out, features[ids])
    # Rows of a part that is elsewhere are left as they are.
    out[:] = 1
    _core.Features([files[0], None, files[2]], topology).gather(rows, out=out)
    there = parts[ids] != 1
    assert np.array_equal(out[there], features[ids][there])
    assert np.array_equal(out[~there], np.ones_like(out[~there]))
    for wrong in (out[:-1], out[::-1], out.astype("U1"), np.broadcast_to(out[:1], out.shape)):
        with pytest.raises(TypeError, match="out: expected a writeable C-contiguous array"):
            opened.gather(rows, out=wrong)


def test_memory_of_a_batch_is_its_own_until_it_is_gone(stored):
    topology, features = opened(stored, "random")
    sampler = _core.Sampler(topology, [5], seed=1)
    rows = np.arange(200, dtype=np.uint32)
    first = sampler.sample(rows, features=features)
    kept = (first.n_id, first.features)
    copies = [array.copy() for array in kept]
    where = first.features.ctypes.data
    del first
    for step in range(20):
        batch = sampler.sample(rows, step=step, features=features)
        assert batch.features.ctypes.data != where
    assert all(np.array_equal(a, b) for a, b in zip(kept, copies, strict=True))
    del kept, batch
    gc.collect()
    again = [sampler.sample(rows, features=features) for _ in range(3)]
    assert where in [batch.features.ctypes.data for batch in again]


def names_of_threads():
    tasks = f"/proc/{os.getpid()}/task"
    found = []
    for task in os.listdir(tasks):
        try:
            with open(f"{tasks}/{task}/comm") as file:
                found.append(file.read().strip())
        except OSError:
            pass
    return found


def test_an_iterator_that_is_dropped_or_closed_leaves_no_thread(stored):
    topology, features = opened(stored, "random")
    sampler = _core.Sampler(topology, [5, 5], seed=1)
    rows, offsets = np.arange(3000, dtype=np.uint32), np.arange(0, 3001, 10)
    for leave in ("drop", "close"):
        batches = sampler.batches(rows, offsets, features=features, ahead=3, threads=2)
        next(batches)
        begun = time.monotonic()
        while names_of_threads().count("fastpart-sample") < 2 and time.monotonic() < begun + 10:
            time.sleep(0.01)  # a thread has its name once it runs
        assert names_of_threads().count("fastpart-sample") == 2
        if leave == "drop":
            del batches
        else:
            batches.close()
            assert list(batches) == []
        assert "fastpart-sample" not in names_of_threads()
    assert len(list(sampler.batches(rows, offsets, ahead=3, threads=2))) == 300
    assert "fastpart-sample" not in names_of_threads()


def test_threads_of_python_may_share_an_iterator(stored):
    topology, _ = opened(stored, "random")
    sampler = _core.Sampler(topology, [3], seed=1)
    rows, offsets = np.arange(3000, dtype=np.uint32), np.arange(0, 3001, 10)
    batches, found = sampler.batches(rows, offsets, ahead=3, threads=2), []
    threads = [threading.Thread(target=lambda: found.extend(b.rows[0] for b in batches)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == rows[::10].tolist()


@examples(10)
@given(graph=edge_lists(12, 40), seed=st.integers(0, 5))
@pytest.mark.parametrize("kind", ["uniform", "labor"])
def test_a_graph_in_memory_is_as_its_only_part(tmp_path_factory, graph, kind, seed):
    n, records = graph
    root = tmp_path_factory.mktemp("one") / "parts"
    stored = saved(root, n, records, np.zeros(n, int), 1)
    (part,) = fp.open_partition(root, of="vertices").parts
    arrays = [np.array(each) for each in (part.vertices, part.indptr, part.indices)]
    memory = _core.Topology.in_memory(*arrays)
    del arrays
    gc.collect()
    ids, seeds = np.array(part.edge_ids), np.arange(n, dtype=np.uint32)

    def content(batch, ids=None):
        edges = batch.e_id.tolist() if ids is None else ids[batch.e_id].tolist()
        return batch.n_id.tolist(), batch.indptr.tolist(), batch.indices.tolist(), edges

    one, other = (
        _core.Sampler(topology, [2, 1], kind=kind, seed=seed, edge_ids=True).sample(seeds)
        for topology in (stored, memory)
    )
    assert content(one) == content(other, ids)
    one, other = (topology.subgraph(seeds[::2].copy(), edge_ids=True) for topology in (stored, memory))
    assert content(one) == content(other, ids)
    one, other = (topology.walks(seeds, 3, seed=seed) for topology in (stored, memory))
    assert one.tolist() == other.tolist()


def test_a_graph_in_memory_is_checked():
    ids, offsets, sources = np.arange(2), np.array([0, 1, 2]), np.array([1, 0], np.int32)
    for wrong in ((ids[:1], offsets[:1], sources), (ids, offsets[:2], sources)):
        with pytest.raises(fp.errors.GraphFormatError, match="the lengths of its arrays contradict"):
            _core.Topology.in_memory(*wrong)
    for offsets, sources in (([0, 3, 2], [1, 0]), ([0, 1, 2], [1, 7]), ([0, 1, 2], [-1, 0])):
        topology = _core.Topology.in_memory(ids, np.array(offsets), np.array(sources, np.int32))
        with pytest.raises(fp.errors.GraphFormatError, match="the graph"):
            _core.Sampler(topology, [-1]).sample(np.arange(2, dtype=np.uint32))


@pytest.mark.parametrize("direct", [False, True])
def test_rows_of_any_kind_are_those_of_the_parts(direct, tmp_path):
    """Three parts with files of other numbers of rows than vertices, as those of in-edges or of one type."""
    topology = saved(tmp_path / "parts", 30, [[0, 1]], np.arange(30) % 3, 3)
    rows = np.random.default_rng(3).standard_normal((20, 4)).astype(np.float16)
    starts, files = np.array([0, 7, 7, 20]), [tmp_path / f"{part}.npy" for part in range(3)]
    for file, first, end in zip(files, starts, starts[1:], strict=False):
        np.save(file, rows[first:end])
    opened = _core.Features(files, topology, starts=starts, direct=direct)
    assert not opened.has_means
    wanted = np.random.default_rng(4).integers(0, 20, 90)
    for dtype in (np.int64, np.uint32):
        np.testing.assert_array_equal(opened.gather(wanted.astype(dtype)), rows[wanted], strict=True)
    assert opened.bytes_of(wanted) > 0
    for row in (-1, 20):
        with pytest.raises(fp.errors.ParameterError, match=rf"rows: the row {row} is outside 0..20"):
            opened.gather(np.array([row]))
    with pytest.raises(TypeError, match="rows: expected uint32 or int64 of one dimension, got float64"):
        opened.gather(np.zeros(3))
    for wrong, text in (
        ([0, 7, 20], "starts: 3 numbers for 3 parts. Pass 4"),
        ([0, 8, 7, 20], "starts: expected the first row of each part"),
        ([0, -7, 7, 20], "starts: expected the first row of each part"),
        ([1, 7, 7, 20], "starts: expected the first row of each part"),
    ):
        with pytest.raises(fp.errors.ParameterError, match=text):
            _core.Features(files, topology, starts=np.array(wrong))
    with pytest.raises(fp.errors.GraphFormatError, match=r"7 rows of dtype .* expected 8"):
        _core.Features(files, topology, starts=np.array([0, 8, 8, 21]))
