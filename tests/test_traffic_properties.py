"""Predicted traffic of tiny graphs: exact where nothing is left to chance, in the mean of many batches elsewhere."""

import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp


@st.composite
def tasks(draw):
    """Draw directed records without repeats, parts, training vertices and a number of hops."""
    n = draw(st.integers(2, 12))
    vertices = st.integers(0, n - 1)
    records = draw(st.lists(st.tuples(vertices, vertices), min_size=1, max_size=30, unique=True))
    k = draw(st.integers(1, 4))
    parts = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    train = draw(st.lists(vertices, min_size=1, unique=True))
    hops = draw(st.integers(0, 3))
    return n, np.array(records, np.uint32), fp.VertexPartition(np.array(parts), k), sorted(train), hops


def predicted(n, records, parts, train, fanouts, *, batch_size=100, cache=0.0):
    graph = fp.open_graph(records, num_vertices=n, directedness="directed", layout="rows")
    splits = {"train": np.array(train)}
    return fp.predict_traffic(parts, fanouts, batch_size, graph=graph, splits=splits, cache=cache)


def reached(records, seeds, hops):
    """Return the vertices from which a seed can be reached in so many hops."""
    found = set(seeds)
    for _ in range(hops):
        found |= {int(source) for source, target in records if target in found}
    return found


@given(tasks())
def test_whole_neighbourhoods_are_what_can_be_reached(task):
    n, records, parts, train, hops = task
    traffic = predicted(n, records, parts, train, [-1] * hops)
    own = np.asarray(parts)
    sets = [reached(records, [v for v in train if own[v] == part], hops) for part in range(parts.k)]
    assert traffic.parts["seeds"].to_list() == [sum(own[v] == part for v in train) for part in range(parts.k)]
    assert traffic.parts["rows"].to_list() == [len(found) for found in sets]
    remote = [sum(own[v] != part for v in found) for part, found in enumerate(sets)]
    assert traffic.parts["remote_rows"].to_list() == remote
    assert (traffic.rows, traffic.remote_rows) == (sum(map(len, sets)), sum(remote))


@given(tasks(), st.integers(1, 4), st.integers(1, 5))
def test_one_part_or_no_hop_fetches_nothing(task, fanout, batch_size):
    n, records, parts, train, hops = task
    alone = predicted(n, records, np.zeros(n, int), train, [fanout] * hops, batch_size=batch_size)
    assert (alone.remote_rows, alone.saved_rows) == (0, 0)
    seeds = predicted(n, records, parts, train, [0] * hops, batch_size=batch_size)
    assert (seeds.rows, seeds.remote_rows) == (pytest.approx(len(train)), 0)


@given(tasks(), st.integers(1, 4), st.lists(st.sampled_from([0, 0.1, 0.5, 1.0]), min_size=2, max_size=3))
def test_a_larger_cache_saves_no_less(task, fanout, shares):
    n, records, parts, train, hops = task
    found = [predicted(n, records, parts, train, [fanout] * hops, cache=c).parts for c in sorted(shares)]
    for parts_of in found:
        assert (parts_of["saved_rows"] <= parts_of["remote_rows"] + 1e-9).all()
    for less, more in pairwise(found):
        assert less["remote_rows"].equals(more["remote_rows"])
        assert (less["cached_rows"] <= more["cached_rows"]).all()
        assert (less["saved_rows"] <= more["saved_rows"] + 1e-9).all()
    everything = predicted(n, records, parts, train, [fanout] * hops, cache=1.0)
    if (
        np.bincount(parts, minlength=parts.k).min() * 2 >= n
    ):  # then a cache as large as a part holds all other vertices
        assert everything.fetched_rows == pytest.approx(0, abs=1e-9)


def drawn(n, records, own, train, fanouts, epochs, rng):
    """Return the rows of each part per epoch of one step, the mean of as many epochs."""
    rows = np.zeros((max(own) + 1, n), bool)
    total = np.zeros(2)
    for _ in range(epochs):
        rows[:] = False
        for part in range(len(rows)):
            level = {v for v in train if own[v] == part}
            for fanout in [*fanouts, 0]:
                rows[part, sorted(level)] = True
                lists = [records[records[:, 1] == target, 0] for target in sorted(level)]
                picks = [rng.choice(found, min(fanout, len(found)), replace=False) for found in lists]
                level = set(np.concatenate([*picks, []]).astype(int).tolist())
        total += rows.sum(), sum(rows[part, own != part].sum() for part in range(len(rows)))
    return total / epochs


@pytest.mark.parametrize("fanouts", [[1], [2, 2], [1, 3, 1]])
def test_the_mean_of_many_batches(fanouts):
    rng = np.random.default_rng(0)
    n = 60
    own, measured, expected = np.arange(n) % 3, np.zeros(2), np.zeros(2)
    for _ in range(20):
        records = np.unique(rng.integers(0, n, (300, 2)), axis=0).astype(np.uint32)
        train = rng.choice(n, 9, replace=False).tolist()
        measured += drawn(n, records, own, train, fanouts, 30, rng)
        traffic = predicted(n, records, own, train, fanouts)
        expected += traffic.rows, traffic.remote_rows
    np.testing.assert_allclose(expected, measured, rtol=0.05)


def test_ctrl_c_ends_a_prediction():
    """It would take minutes."""
    script = (
        "import numpy as np, fastpart as fp\n"
        "n, rng = 1 << 20, np.random.default_rng(0)\n"
        "graph = fp.open_graph(rng.integers(0, n, (8_000_000, 2), np.uint32), num_vertices=n)\n"
        "splits = {'train': np.arange(n)}\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    fp.predict_traffic(np.arange(n) % 8, [10] * 50, graph=graph, splits=splits, threads=1)\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
    assert (output, process.returncode) == ("interrupted\n", 0), errors
