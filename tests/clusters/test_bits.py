"""A partition by replicas has the bits of one machine, for any number of workers and shards."""

import itertools
import random

import numpy as np
import pytest

import fastpart as fp
from fastpart.machines.engine import Threads
from fastpart.machines.partitioning import Place, Shards
from fastpart.partitions.partitioners.builtin import on_machines

RNG = np.random.default_rng(5)


def planted(n, m, classes=16, inside=0.8):
    own = RNG.integers(0, classes, m)
    other = np.where(RNG.random(m) < inside, own, RNG.integers(0, classes, m))
    ends = RNG.integers(0, n // classes, (2, m)) * classes
    return np.stack([ends[0] + own, ends[1] + other], axis=1)


def skewed(n, m):
    ends = (n * RNG.random((2, m)) ** 4).astype(np.int64)
    return RNG.permutation(n)[ends].T


def grid(side):
    at = np.arange(side * side).reshape(side, side)
    pairs = [(at[:, :-1], at[:, 1:]), (at[:-1], at[1:])]
    return np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])


def symmetric(records):
    records = records[records[:, 0] != records[:, 1]]
    return fp.open_graph(np.concatenate([records, records[:, ::-1]]), directedness="symmetric")


GRAPHS = {
    "planted": lambda: fp.open_graph(planted(8000, 60_000)),
    "skewed": lambda: fp.open_graph(skewed(8000, 60_000), num_vertices=8000),
    "grid": lambda: fp.open_graph(grid(70)),
    "symmetric": lambda: symmetric(planted(3000, 20_000)),
    "loops and parallel records": lambda: fp.open_graph(
        np.concatenate([np.repeat(planted(600, 900), 3, axis=0), np.arange(600).repeat(2).reshape(-1, 2)])
    ),
    "empty": lambda: fp.open_graph(np.zeros((0, 2), np.uint32), num_vertices=0),
    "no edges": lambda: fp.open_graph(np.zeros((0, 2), np.uint32), num_vertices=50),
    "few vertices": lambda: fp.open_graph(np.array([[0, 1], [1, 2]])),
}
MATRIX = list(itertools.product(GRAPHS, (1, 2, 3, 4), (1, 3, 8, 16), (1, 3, 5)))


def same_everywhere(graph, k, place, **given):
    given = {"path": "two_levels", "sample": 0.1, "threads": 1, **given}
    expected = fp.multilevel(graph, k, **given)
    made = on_machines("multilevel", place, graph, k, **given)
    np.testing.assert_array_equal(made.assignment, expected.assignment)
    assert made.loads.tolist() == expected.loads.tolist()
    assert (made.checksum, made.loops) == (expected.checksum, expected.loops)
    np.testing.assert_array_equal(made.cap, expected.cap)
    assert made.parameters == expected.parameters
    assert list(place.shared.iterdir()) == []
    return made


@pytest.mark.filterwarnings("ignore:k=.* parts for")
@pytest.mark.parametrize("cell", random.Random(3).sample(MATRIX, 30), ids=str)
def test_any_workers_and_shards_give_the_bits_of_one_machine(cell, tmp_path):
    name, workers, vertices, records = cell
    graph = GRAPHS[name]()
    k = 8 if graph.num_vertices > 100 else 5
    same_everywhere(graph, k, Place(Threads(workers), tmp_path, Shards(records, vertices)))


@pytest.mark.soak
@pytest.mark.filterwarnings("ignore:k=.* parts for")
@pytest.mark.parametrize("cell", MATRIX, ids=str)
def test_all_workers_and_shards_give_the_bits_of_one_machine(cell, tmp_path):
    test_any_workers_and_shards_give_the_bits_of_one_machine(cell, tmp_path)


@pytest.mark.parametrize(
    "given",
    [
        {"volume_balance": 1.3},
        {"balance_on": np.arange(8000) % 7 == 0},
        {"sizes": [3, 1, 1, 1]},
        {"fixed": np.where(np.arange(8000) % 40 == 0, np.arange(8000) % 4, -1)},
        {"effort": "quick", "balance": 1.0},
        {"seed": 9, "threads": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["planted", "skewed"])
def test_bounds_and_efforts_are_those_of_one_machine(name, given, tmp_path):
    same_everywhere(GRAPHS[name](), 4, Place(Threads(3), tmp_path, Shards(2, 7)), **given)


def heavy(n, m):
    """Communities, one of which has half of the edges."""
    own = np.where(RNG.random(m) < 0.5, 0, RNG.integers(0, 8, m))
    other = np.where(RNG.random(m) < 0.9, own, RNG.integers(0, 8, m))
    ends = RNG.integers(0, n // 8, (2, m)) * 8
    return np.stack([ends[0] + own, ends[1] + other], axis=1)


@pytest.mark.parametrize("workers", [1, 3])
def test_default_bounds_are_mended_as_on_one_machine(workers, tmp_path):
    graph = fp.open_graph(heavy(8000, 60_000), num_vertices=8000)
    place = Place(Threads(workers), tmp_path, Shards(2, 5))
    free = same_everywhere(graph, 8, place)
    made = fp.partition(graph, 8, cluster=Threads(workers), shared=tmp_path, threads=1)
    assert made.volume_loads.max() <= made.volume_cap < free.evaluate().parts["volume"].max()
    assert made == same_everywhere(graph, 8, place, sample=0.25, volume_balance=2.0)


@pytest.mark.filterwarnings("ignore:volume_balance. the parts cannot")
def test_a_hub_heavier_than_the_bound_is_no_error_on_a_cluster(tmp_path):
    star = np.stack([np.zeros(5000, int), np.arange(1, 5001)], axis=1)
    graph = fp.open_graph(np.concatenate([star, planted(5000, 9000)]), num_vertices=5001)
    same_everywhere(graph, 16, Place(Threads(3), tmp_path, Shards(2, 5)), volume_balance=2.0)


def test_partition_names_its_cluster(tmp_path):
    graph = GRAPHS["planted"]()
    made = fp.partition(graph, 4, cluster=Threads(2), shared=tmp_path, threads=1)
    assert made.parameters["path"] == "two_levels"
    assert made.parameters["sample"] == 0.25
    assert made.parameters["chosen"]["because"] == "2 workers of a cluster make it"
    assert made.costs["messages"] > 0
    again = fp.multilevel(graph, 4, volume_balance=2.0, path="two_levels", sample=0.25)
    np.testing.assert_array_equal(made.assignment, again.assignment)


def test_a_large_graph_in_memory_is_refused_before_any_work(tmp_path):
    records = np.zeros(((1 << 21) + 1, 2), np.uint32)
    graph = fp.open_graph(records, num_vertices=2)
    with pytest.raises(
        fp.errors.ParameterError, match=r"^graph: its 2,097,153 records are in memory.*np\.save"
    ):
        fp.partition(graph, 2, cluster=Threads(2), shared=tmp_path)
    assert list(tmp_path.iterdir()) == []
