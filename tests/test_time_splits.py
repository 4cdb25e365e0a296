"""Edges split by time: what is trained on, what is held out, and that nothing of it comes earlier."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from random_typed import random_typed_graph, records_of
from soaked import examples
from strategies import edge_lists
from temporal import NO_TIME


def oracle(records, times, val, test):
    """Return the training records, and the held-out pairs with the time of their first record, by definition."""
    m, ordered = len(records), sorted(times)
    starts = [ordered[min(int(np.ceil(round((1 - share) * m, 6))), m - 1)] for share in (val + test, test)]
    first = {}
    for (u, v), time in zip(records, times, strict=True):
        key = min(u, v), max(u, v)
        if u != v and (key not in first or time < first[key][1]):
            first[key] = (u, v), time
    held_out = [each for each in first.values() if each[1] >= starts[0]]
    split = [[each for each in held_out if (each[1] >= starts[1]) == late] for late in (False, True)]
    return [list(record) for record, time in zip(records, times, strict=True) if time < starts[0]], *split


@examples(20)
@given(edge_lists(max_n=8, max_m=30), st.data())
def test_splits_follow_the_definition(graph, data):
    n, records = graph
    times = data.draw(
        st.lists(st.integers(0, 9) | st.just(NO_TIME), min_size=len(records), max_size=len(records))
    )
    val, test = data.draw(st.sampled_from([(0.1, 0.2), (0.25, 0.25), (0.5, 0.3)]))
    opened = fp.open_graph(records, num_vertices=n)
    expected = oracle(records.tolist(), times, val, test) if times else ([], [], [])
    if not expected[0]:
        with pytest.raises(fp.errors.ParameterError):
            fp.split_edges(opened, val, test, times=np.array(times, np.int64))
        return
    splits = fp.split_edges(opened, val, test, times=np.array(times, np.int64))
    assert splits.graph._source.block(0, splits.graph.num_edges).tolist() == expected[0]
    for pairs, at, wanted in zip(
        (splits.val, splits.test), (splits.val_times, splits.test_times), expected[1:], strict=True
    ):
        found = [(tuple(pair), time) for pair, time in zip(pairs.tolist(), at.tolist(), strict=True)]
        assert sorted(found) == sorted(wanted)
    assert all(splits.edge_times.max() < at.min() for at in (splits.val_times, splits.test_times) if len(at))


def test_splits_over_types_follow_the_definition(tmp_path):
    """Relations with times are split at the same two times, each with pairs of its own. Others are trained on."""
    graph = random_typed_graph(tmp_path / "graph", 2)
    rng, records = np.random.default_rng(0), records_of(graph)
    of = {each.name: slice(each.first, each.range.stop) for each in graph.relations}
    times = {name: rng.integers(0, 20, of[name].stop - of[name].start) for name in ("cites", "writes")}
    times["writes"][::7] = NO_TIME
    splits = fp.split_edges(graph, 0.1, 0.2, times=times)
    ordered = sorted(np.concatenate([times["cites"], times["writes"]]).tolist())
    starts = [ordered[int(np.ceil(round(share * len(ordered), 6)))] for share in (0.7, 0.8)]
    expected = {"val": [], "test": []}
    kept = {"has_topic": records[of["has_topic"]].tolist()}
    for number, name in ((0, "cites"), (2, "writes")):
        of_relation, at = records[of[name]].tolist(), times[name].tolist()
        kept[name] = [pair for pair, time in zip(of_relation, at, strict=True) if time < starts[0]]
        first = {}
        for (u, v), time in zip(of_relation, at, strict=True):
            key = min(u, v), max(u, v)
            if u != v and (key not in first or time < first[key][1]):
                first[key] = (u, v, number), time
        for pair, time in first.values():
            if time >= starts[0]:
                expected["test" if time >= starts[1] else "val"].append((pair, time))
        np.testing.assert_array_equal(splits.edge_times[name], times[name][times[name] < starts[0]])
    for each in splits.graph.relations:
        assert records_of(splits.graph)[each.first : each.range.stop].tolist() == kept[each.name]
    for name, wanted in expected.items():
        at = getattr(splits, f"{name}_times").tolist()
        found = [(tuple(pair), time) for pair, time in zip(getattr(splits, name).tolist(), at, strict=True)]
        assert sorted(found) == sorted(wanted)
        assert wanted
    fp.algorithms.random(splits.graph, k=2, of="vertices").save(
        tmp_path / "parts", graph=splits.graph, edge_splits=splits, edge_times=splits.edge_times
    )
    assert fp.open_partition(tmp_path / "parts").manifest["held_out_from"] == splits.val_times.min()
    for more, text in (
        ({"times": times["cites"]}, "times: the graph has types. Give times by relation"),
        (
            {"times": {"cite": times["cites"]}},
            "times: 'cite' is no relation of the graph. Did you mean 'cites'?",
        ),
        ({"times": {"cites": times["writes"]}}, r"times: expected one per record, of shape \(150,\)"),
        ({"times": times, "out": tmp_path / "train.bin"}, "out: times of relations go to"),
    ):
        with pytest.raises(fp.errors.ParameterError, match=text):
            fp.split_edges(graph, **more)


def graph(n=200, m=3000):
    rng = np.random.default_rng(0)
    return rng.integers(0, n, (m, 2), dtype=np.uint32), rng.integers(0, 1000, m)


def test_files_hold_the_same(tmp_path):
    records, times = graph()
    records.tofile(tmp_path / "g.bin")
    np.save(tmp_path / "times.npy", times)
    source = fp.open_graph(tmp_path / "g.bin", dtype="u32", num_vertices=200)
    there = fp.split_edges(source, times=tmp_path / "times.npy", out=tmp_path / "train.bin")
    here = fp.split_edges(source, times=times)
    assert fp.open_graph(tmp_path / "train.bin") == there.graph
    assert np.array_equal(np.load(tmp_path / "train.bin.times.npy"), here.edge_times)
    with np.load(tmp_path / "train.bin.splits.npz") as found:
        for name in ("val", "test", "val_times", "test_times"):
            assert np.array_equal(found[name], getattr(here, name))
    for number, splits in enumerate((here, tmp_path / "train.bin.splits.npz")):
        fp.spring(there.graph, k=2).save(
            tmp_path / f"{number}", graph=there.graph, edge_splits=splits, edge_times=here.edge_times
        )
        stored = fp.open_partition(tmp_path / f"{number}")
        assert stored.manifest["held_out_from"] == here.val_times.min() > here.edge_times.max()
        fp.store.verify(tmp_path / f"{number}")


def test_a_random_split_has_no_times(tmp_path):
    records, _ = graph()
    splits = fp.split_edges(records)
    assert splits.edge_times is splits.val_times is splits.test_times is None
    fp.spring(splits.graph, k=2).save(tmp_path / "parts", graph=splits.graph, edge_splits=splits)
    assert "held_out_from" not in json.loads((tmp_path / "parts" / "manifest.json").read_text())


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (
            {"times": np.zeros(5, int)},
            fp.errors.ParameterError,
            r"expected one per record, of shape \(3000,\)",
        ),
        ({"times": np.zeros(3000)}, TypeError, "whole numbers of int64, got float64"),
        ({"times": np.zeros(3000, int)}, fp.errors.ParameterError, "no record is before 0"),
        ({"val": 0.6, "test": 0.5}, fp.errors.ParameterError, "leave no edges to train on"),
        ({"val": 0, "test": 0}, fp.errors.ParameterError, "nothing is held out"),
    ],
)
def test_refusals(given, error, text):
    records, times = graph()
    with pytest.raises(error, match=text):
        fp.split_edges(records, **{"times": times} | given)
