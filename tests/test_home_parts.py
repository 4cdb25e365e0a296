"""Home parts: against counting by hand, and what users do with them."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from strategies import edge_lists


def oracle(n, edges, parts, k):
    counts = [Counter() for _ in range(n)]
    for (u, v), part in zip(edges, parts, strict=True):
        for end in {u, v}:
            counts[end][part] += 1
    homes = [min(count, key=lambda part: (-count[part], part)) if count else -1 for count in counts]
    for v in range(n):
        if homes[v] < 0:
            homes[v] = min(range(k), key=lambda part: (homes.count(part), part))
    return homes


@given(edge_lists(), st.sampled_from([1, 2, 3, 5, 9, 300, 40_000]), st.integers(1, 3), st.data())
def test_as_defined(graph, k, threads, data):
    n, edges = graph
    few = st.integers(0, min(k, 4) - 1) | st.integers(max(k - 2, 0), k - 1)
    parts = data.draw(st.lists(few, min_size=len(edges), max_size=len(edges)))
    opened = fp.open_graph(edges, num_vertices=n)
    made = fp.home_parts(opened, fp.EdgePartition(parts, k), threads=threads)
    assert made.assignment.tolist() == oracle(n, edges.tolist(), parts, k)
    assert made.loads.tolist() == np.bincount(made.assignment, minlength=k).tolist()
    assert (made.k, made.cap, made.algorithm) == (k, None, "user+home")
    assert (made.num_vertices, made.num_edges, made.checksum) == (n, len(edges), opened.identify()[1])


@pytest.mark.parametrize("k", [2, 32, 300, 70_000])
def test_whatever_the_threads_and_the_passes(rmat, k):
    """For the larger k, the slots do not hold all vertices at once."""
    edges = np.fromfile(rmat.path, np.uint32).reshape(-1, 2)
    parts = fp.EdgePartition(np.random.default_rng(k).integers(0, k, len(edges)) ** 2 % k, k)
    made = [fp.home_parts(rmat, parts, threads=threads).assignment for threads in (1, 2, 3, 8)]
    for other in made[1:]:
        assert np.array_equal(other, made[0])
    ends = np.concatenate([edges[:, 0], edges[edges[:, 0] != edges[:, 1], 1]]).astype(np.int64)
    of_ends = np.concatenate([parts.assignment, parts.assignment[edges[:, 0] != edges[:, 1]]]).astype(
        np.int64
    )
    pairs, counts = np.unique(ends * k + of_ends, return_counts=True)
    order = np.lexsort((pairs % k, -counts, pairs // k))
    vertices, first = np.unique(pairs[order] // k, return_index=True)
    assert np.array_equal(made[0][vertices], (pairs[order] % k)[first])


def test_halos_of_edge_partitions(datasets, tmp_path):
    """What the step is for: a comparison by halo replication, and a directory to train from."""
    edges = fp.convert(datasets / "cora.txt.gz", tmp_path / "g.bin")
    by_record = fp.algorithms.two_phase(edges, 4, scoring="hdrf", seed=7)
    by_vertex = fp.home_parts(edges, by_record)
    assert by_vertex.algorithm == "two_phase+home"
    assert by_vertex.parameters == by_record.parameters
    totals = fp.evaluate(edges, by_vertex).summary
    random = fp.evaluate(edges, fp.algorithms.random(edges, 4)).summary
    assert 1 <= totals["halo_rf"][0] < random["halo_rf"][0]
    by_vertex.save(tmp_path / "parts", graph=edges)
    loaded = fp.open_partition(tmp_path / "parts", graph=edges)
    assert loaded.algorithm == "two_phase+home"
    assert np.array_equal(loaded.assignment, by_vertex.assignment)
    halo = sum(part.num_halo for part in loaded.parts)
    assert halo + len(by_vertex) == round(totals["halo_rf"][0] * len(by_vertex))


def test_refusals():
    edges = np.array([[0, 1], [1, 2]])
    with pytest.raises(TypeError, match="edge_partition: expected an EdgePartition, got VertexPartition"):
        fp.home_parts(edges, fp.VertexPartition([0, 1, 1], 2))
    with pytest.raises(fp.errors.GraphFormatError, match="another graph: it has 3 records, the graph has 2"):
        fp.home_parts(edges, fp.EdgePartition([0, 1, 1], 2))
    with pytest.raises(fp.errors.GraphFormatError, match="another graph: its checksum"):
        fp.home_parts(edges, fp.algorithms.dbh(edges[::-1].copy(), 2))
    many = np.array([[v, v + 1] for v in range(1000)])
    with pytest.raises(fp.errors.MemoryBudgetError, match="home parts of 1001 vertices"):
        fp.home_parts(many, fp.algorithms.random(many, 2, of="edges"), memory_limit=10_000)
