"""DBH: against its definition, and what must hold on every graph."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from edge_parts import place_loops, same_whatever_the_input
from splitmix import splitmix64
from strategies import edge_lists

pytestmark = pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")

# Replication factors of a published program, k = 4, 8, 32.
PUBLISHED = {4: 2.62, 8: 4.02, 32: 8.17}


def oracle(n, edges, k, seed):
    degree = [sum(int(v in edge) for edge in edges if edge[0] != edge[1]) for v in range(n)]
    parts = [-1] * len(edges)
    for record, (u, v) in enumerate(edges):
        if u != v:
            end = min((u, v), key=lambda end: (degree[end], end))
            parts[record] = splitmix64(end ^ seed) % k
    return place_loops(edges, parts, k, None)


@given(edge_lists(), st.integers(1, 300), st.integers(0, 2**64 - 1), st.integers(1, 3))
def test_as_defined(graph, k, seed, threads):
    n, edges = graph
    made = fp.algorithms.dbh(fp.open_graph(edges, num_vertices=n), k, seed=seed, threads=threads)
    assert made.assignment.tolist() == oracle(n, edges.tolist(), k, seed)
    assert made.loads.tolist() == np.bincount(made.assignment, minlength=k).tolist()
    assert made.cap is None


def test_the_part_is_that_of_the_hashed_end(rmat):
    edges = np.fromfile(rmat.path, np.uint32).reshape(-1, 2)
    edges = edges[edges[:, 0] != edges[:, 1]]
    made, hashed = fp.algorithms.dbh(edges, 12, seed=3), fp.algorithms.hash(edges, 12, seed=3).assignment
    u, v = edges.T
    degree = np.bincount(edges.ravel())
    first = (degree[u] < degree[v]) | ((degree[u] == degree[v]) & (u < v))
    assert np.array_equal(made.assignment, hashed[np.where(first, u, v)])


def test_same_whatever_the_threads_and_the_input(rmat, tmp_path):
    same_whatever_the_input(
        lambda edges, **options: fp.algorithms.dbh(edges, 300, seed=1, **options), rmat, tmp_path
    )


@pytest.mark.parametrize("k", PUBLISHED)
def test_as_good_as_published(datasets, tmp_path, k):
    edges = fp.convert(datasets / "amazon-computers.txt.gz", tmp_path / "g.bin")
    assert fp.evaluate(edges, fp.algorithms.dbh(edges, k)).summary["rf"][0] <= 1.03 * PUBLISHED[k]


def test_memory_that_does_not_suffice_names_the_way_out(tmp_path):
    edges = np.array([[v, (v + 1) % 5] for v in range(5)] * 1000)
    with pytest.raises(fp.errors.MemoryBudgetError, match="out="):
        fp.algorithms.dbh(edges, 4, memory_limit=4000)
    assert len(fp.algorithms.dbh(edges, 4, memory_limit=4000, out=tmp_path / "parts.npy")) == 5000


def test_balance_is_no_parameter():
    with pytest.raises(TypeError, match="balance"):
        fp.algorithms.dbh(np.array([[0, 1]]), 2, balance=1.1)
