"""Streams over typed graphs: records are read in scattered pieces, and plain graphs as they lie."""

import pickle

import numpy as np
import pytest

import fastpart as fp
from random_typed import records_of, typed_graph
from splitmix import splitmix64

UNIT = 4096


def place_of(index, units):
    """Return the place of a unit in the order of the core: a Feistel network, walked until it lands below units."""
    half = max(1, -(-(units - 1).bit_length() // 2))
    mask = (1 << half) - 1
    keys = [splitmix64(splitmix64(0) ^ turn) for turn in range(4)]
    while True:
        left, right = index >> half, index & mask
        for key in keys:
            left, right = right, left ^ (splitmix64(right ^ key) & mask)
        index = left << half | right
        if index < units:
            return index


def order_of(m):
    """Return the records in the order in which streams read them."""
    units = m // UNIT
    places = [place_of(index, units) for index in range(units)]
    return np.concatenate([*(np.arange(UNIT) + place * UNIT for place in places), np.arange(units * UNIT, m)])


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """Return a graph of nine full units and a rest, without loops."""
    rng = np.random.default_rng(4)
    relations = {}
    for index, (name, source, target) in enumerate((("r", "a", "b"), ("s", "b", "c"), ("t", "a", "c"))):
        count = 13_000 + index
        relations[name] = (source, target, np.stack([rng.integers(500, size=count) for _ in range(2)], 1))
    return typed_graph(tmp_path_factory.mktemp("typed"), {"a": 500, "b": 500, "c": 500}, relations)


def plain(graph, order=None):
    records = records_of(graph)
    return fp.open_graph(records if order is None else records[order], num_vertices=graph.num_vertices)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("hdrf", {}),
        ("greedy", {}),
        ("two_phase", {}),
        ("two_phase", {"scoring": "hdrf"}),
        ("spring", {}),
        ("spring", {"batch": 5000}),
    ],
)
def test_pieces_are_read_in_a_scattered_order(graph, name, given):
    order = order_of(graph.num_edges)
    assert sorted(order.tolist()) == list(range(graph.num_edges))
    assert (order != np.arange(graph.num_edges)).any()
    call = getattr(fp.algorithms, name)
    found = call(graph, 5, **given, threads=1).assignment
    expected = call(plain(graph, order), 5, **given).assignment
    if len(expected) == graph.num_edges:
        expected = expected[np.argsort(order)]
    assert (found == expected).all()
    assert (call(graph, 5, **given, threads=3).assignment == found).all()
    assert (call(pickle.loads(pickle.dumps(graph)), 5, **given).assignment == found).all()
    as_they_lie = call(plain(graph), 5, **given).assignment
    assert (as_they_lie != found).any()


def test_a_file_of_parts_is_in_the_order_of_the_records(graph, tmp_path):
    p = fp.algorithms.hdrf(graph, 4, out=tmp_path / "parts.npy")
    assert (np.load(tmp_path / "parts.npy") == fp.algorithms.hdrf(graph, 4).assignment).all()
    assert (np.bincount(p.assignment, minlength=4) == p.loads).all()


def test_algorithms_without_an_order_find_the_same(graph):
    for name in ("ldg", "dbh", "multilevel", "grem"):
        call = getattr(fp.algorithms, name)
        assert (call(graph, 4).assignment == call(plain(graph), 4).assignment).all()
