"""Loaders of edges that do not look ahead: ends at the times of their edges, and negatives that were there before."""

import numpy as np
import pytest

import fastpart as fp
from temporal import NO_TIME, early, in_edges, save, timed_graph

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.usefixtures("one_thread")

N = 120


def graph():
    """Return records without loops, and times of all vertices and records."""
    records, _, edge_times = timed_graph(N, 900)
    edge_times[edge_times == NO_TIME] = 3
    records = records[records[:, 0] != records[:, 1]]
    return records, {
        "times": np.random.default_rng(2).integers(-30, 60, N),
        "edge_times": edge_times[: len(records)],
    }


def stored(folder, k):
    records, rows = graph()
    held_out = {"val": np.empty((0, 2), int)}
    return save(folder, N, records, k, **rows, edge_splits=held_out, features=np.eye(N, dtype=np.float32))


def first_times():
    """Return the time of the first record of each pair, without its direction."""
    records, rows = graph()
    found = {}
    for (u, v), time in zip(records.tolist(), rows["edge_times"].tolist(), strict=True):
        key = min(u, v), max(u, v)
        found[key] = min(found.get(key, time), time)
    return found


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("temporal") / "parts", 3)


@pytest.mark.parametrize("negatives", ["uniform", "batch"])
@pytest.mark.parametrize("temporal", ["uniform", "last"])
def test_batches_follow_the_definition(parts, temporal, negatives):
    records, rows = graph()
    known, edges = first_times(), in_edges(N, records, **rows)
    loader = parts.link_loader(fanouts=[3, 2], batch_size=50, temporal=temporal, negatives={negatives: 3})
    positives = 0
    for batch in loader:
        nodes = list(zip(batch.n_id.tolist(), batch.seed_time.tolist(), strict=True))
        pairs = batch.edge_label_index.T.tolist()
        assert len(set(nodes[: batch.num_sampled_nodes[0]])) == batch.num_sampled_nodes[0]
        for place, (source, target) in enumerate(pairs):
            (u, time), (v, also) = nodes[source], nodes[target]
            assert time == also
            if place < batch.batch_size:
                assert known[min(u, v), max(u, v)] == time
                assert loader.edges[batch.input_id[place]].tolist() == [u, v]
            else:
                positive = pairs[(place - batch.batch_size) // 3]
                assert (u, time) == nodes[positive[0]]
                assert v not in (u, nodes[positive[1]][0])
                assert rows["times"][v] < time
        positives += batch.batch_size
        for node in range(len(batch.indptr) - 1):
            v, time = nodes[node]
            row = slice(int(batch.indptr[node]), int(batch.indptr[node + 1]))
            found = list(zip(batch.n_id[batch.indices[row]].tolist(), batch.e_id[row].tolist(), strict=True))
            assert set(found) <= {(u, e) for u, e, *_ in early(edges[v], time)}
            assert {nodes[i][1] for i in batch.indices[row].tolist()} <= {time}
    assert positives == len(known)


@pytest.mark.parametrize("negatives", ["uniform", "batch"])
def test_batches_do_not_depend_on_partition_and_ranks(tmp_path, negatives):
    found = []
    for k, ranks in [(1, 1), (2, 2), (4, 2)]:
        parts = stored(tmp_path / f"{k}", k)
        how = {"fanouts": [3, 2], "batch_size": 64, "temporal": "uniform", "negatives": negatives}
        loaders = [parts.link_loader(rank=rank, world_size=ranks, **how) for rank in range(ranks)]
        epochs = []
        for batches in zip(*loaders, strict=True):
            seen = set()
            for batch in batches:
                nodes = list(zip(batch.n_id.tolist(), batch.seed_time.tolist(), strict=True))
                ends = [
                    (nodes[u], nodes[v], y)
                    for (u, v), y in zip(
                        batch.edge_label_index.T.tolist(), batch.edge_label.tolist(), strict=True
                    )
                ]
                targets = np.repeat(np.arange(len(batch.indptr) - 1), np.diff(batch.indptr))
                edges = {
                    (nodes[t], nodes[s], e)
                    for t, s, e in zip(
                        targets.tolist(), batch.indices.tolist(), batch.e_id.tolist(), strict=True
                    )
                }
                seen |= set(ends) | edges
            epochs.append(seen)
        found.append(epochs)
    assert found[0] == found[1] == found[2]


def test_uniform_negatives_are_all_earlier_vertices_alike(parts):
    _, rows = graph()
    time, count = 20, 400
    loader = parts.link_loader([[0, 1]], fanouts=[1], temporal="last", input_time=[time], negatives=count)
    met = []
    for epoch in range(10):
        loader.set_epoch(epoch)
        (batch,) = loader
        met.append(batch.n_id[batch.edge_label_index[1, 1:]].numpy())
    counts = np.bincount(np.concatenate(met), minlength=N)
    allowed = (rows["times"] < time) & (np.arange(N) > 1)
    assert not counts[~allowed].any()
    p = 1 / allowed.sum()
    assert np.abs(counts[allowed] - 10 * count * p).max() < 5 * np.sqrt(10 * count * p)


def test_a_pair_may_occur_at_several_times(parts):
    pairs, times = [[0, 1], [0, 1], [2, 3]], [30, 40, 35]
    loader = parts.link_loader(pairs, fanouts=[2], temporal="uniform", input_time=times, negatives=0)
    (batch,) = loader
    assert batch.seed_time[batch.edge_label_index[0]].tolist() == [times[i] for i in batch.input_id.tolist()]
    assert batch.num_sampled_nodes[0] == 6


@pytest.mark.parametrize(
    ("edges", "given", "text"),
    [
        ("train", {"input_time": [1]}, "Pass pairs of ids, a time for each"),
        ([[0, 1]], {"input_time": [1, 2]}, "2 times for 1 edges"),
        ([[0, 1], [0, 1]], {"input_time": [2, 2]}, "edges: item 1 occurs more than once with the time 2"),
        ([[0, 1]], {"input_time": [NO_TIME]}, "which stands for no time"),
        ([[0, 1]], {"input_time": [-31]}, r"no other vertex was there before the edge \(0, 1\), at -31"),
        ("train", {"negatives": "local"}, '"local" does not tell which vertices were there'),
        ("train", {"scheduled": True}, "temporal samples are not scheduled"),
    ],
)
def test_refusals(parts, edges, given, text):
    with pytest.raises(fp.errors.ParameterError, match=text):
        list(parts.link_loader(edges, fanouts=[2], temporal="uniform", **given))


def test_edges_without_a_time_are_refused(tmp_path):
    records, rows = graph()
    none = save(tmp_path / "none", N, records, 2, edge_splits={"val": np.empty((0, 2), int)})
    with pytest.raises(fp.errors.ParameterError, match="have no time, the first is"):
        none.link_loader(fanouts=[2], temporal="uniform")
    missing = sorted(first_times())[0]
    with pytest.raises(fp.errors.ParameterError, match="1 of 1 edges have no time"):
        none.link_loader([missing], fanouts=[2], temporal="uniform")
    assert rows["edge_times"].min() > NO_TIME
