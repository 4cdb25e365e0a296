"""SPRING against the same algorithm in plain Python, written from its description and not from the code."""

import heapq
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from soaked import examples
from strategies import edge_lists

pytestmark = pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")


def oracle(n, edges, k, *, balance=1.05, passes=1, batch=None, strict=True):
    """Return the part of each vertex."""
    records = [(int(u), int(v)) for u, v in edges]
    degree = [0] * n
    for u, v in records:
        if u != v:
            degree[u] += 1
            degree[v] += 1
    tau = 0.1 * sum(degree) / k
    share = min(balance, k) * n / k
    cluster, richest = cluster_stream(records, degree, tau, passes, batches(len(records), batch))
    members = merge(cluster, richest, degree, share)
    return assign(n, members, cluster, k, math.ceil(share) if strict else None)


def batches(m, batch):
    """Return the slices of the stream that are decided against one state."""
    size = batch or (1 if m < 2**18 else 1024)
    start = 0
    while start < m:
        yield slice(start, start + size)
        start += size
        if batch is None and m >= 2**18:
            size = min(2 * size, 2**16)


def cluster_stream(records, degree, tau, passes, bounds):
    """Return the cluster and the richest neighbour of each vertex that has a record, by vertex."""
    cluster, richest, volume = {}, {}, []

    def is_richer(v, u):
        return u not in richest or (-degree[v], v) < (-degree[richest[u]], richest[u])

    def may_move(u, v):
        return cluster[u] != cluster[v] and max(volume[cluster[u]], volume[cluster[v]]) <= tau

    def survives(u, v):
        return u not in cluster or v not in cluster or may_move(u, v)

    def commit(u, v):
        for vertex in (u, v):
            if vertex not in cluster:
                cluster[vertex] = len(volume)
                volume.append(degree[vertex])
        if may_move(u, v):
            mover, host = (u, v) if volume[cluster[u]] <= volume[cluster[v]] else (v, u)
            volume[cluster[mover]] -= degree[mover]
            cluster[mover] = cluster[host]
            volume[cluster[mover]] += degree[mover]

    bounds = list(bounds)
    for _ in range(passes):
        for bound in bounds:
            batch = [(u, v) for u, v in records[bound] if u != v]
            for u, v in batch:
                for vertex, other in ((u, v), (v, u)):
                    if is_richer(other, vertex):
                        richest[vertex] = other
            for u, v in [record for record in batch if survives(*record)]:
                commit(u, v)
    return cluster, richest


def merge(cluster, richest, degree, share):
    """Return the vertices of each cluster after merging, by cluster; ``cluster`` is brought up to date."""
    members = {}
    for vertex in sorted(cluster):
        members.setdefault(cluster[vertex], []).append(vertex)
    representative = {
        of: max(vertices, key=lambda vertex: (degree[richest[vertex]], -vertex))
        for of, vertices in members.items()
    }
    queue = [(len(vertices), of) for of, vertices in members.items()]
    heapq.heapify(queue)
    while queue:
        size, i = heapq.heappop(queue)
        if i not in members or len(members[i]) != size:
            continue
        t = cluster[richest[representative[i]]]
        if t == i or size + len(members[t]) > share:
            continue
        for vertex in members[i]:
            cluster[vertex] = t
        members[t] += members.pop(i)
        if degree[richest[representative[i]]] > degree[richest[representative[t]]]:
            representative[t] = representative[i]
        heapq.heappush(queue, (len(members[t]), t))
    return members


def assign(n, members, cluster, k, cap):
    """Return the part of each vertex."""
    loads, part = [0] * k, [-1] * n
    for vertices in (members[of] for of in sorted(members, key=lambda of: (-len(members[of]), of))):
        left = sorted(vertices)
        while left:
            least = loads.index(min(loads))
            room = len(left) if cap is None or loads[least] + len(left) <= cap else cap - loads[least]
            for vertex in left[:room]:
                part[vertex] = least
            loads[least] += room
            left = left[room:]
    for vertex in range(n):
        if vertex not in cluster:
            part[vertex] = loads.index(min(loads))
            loads[part[vertex]] += 1
    return part


def spring(n, edges, k, **options):
    return fp.spring(fp.open_graph(edges, num_vertices=n), k, **options).assignment.tolist()


OPTIONS = st.fixed_dictionaries(
    {
        "k": st.integers(1, 12),
        "balance": st.sampled_from([1.0, 1.05, 1.3, 2.0, 1e308]),
        "passes": st.integers(1, 3),
        "strict": st.booleans(),
    }
)


@examples(60)
@given(edge_lists(40, 150), OPTIONS, st.sampled_from([None, 1]))
def test_sequential_rule_equals_the_oracle(graph, options, batch):
    n, edges = graph
    assert spring(n, edges, batch=batch, **options) == oracle(n, edges, batch=1, **options)


@examples(60)
@given(edge_lists(40, 150), OPTIONS, st.integers(2, 200), st.integers(1, 3))
def test_batched_rule_equals_the_oracle(graph, options, batch, threads):
    n, edges = graph
    assert spring(n, edges, batch=batch, threads=threads, **options) == oracle(
        n, edges, batch=batch, **options
    )


@pytest.fixture(scope="module")
def skewed(tmp_path_factory):
    """An R-MAT with large clusters, small ones, loops, parallel edges and isolated vertices."""
    path = tmp_path_factory.mktemp("rmat") / "g.bin"
    fp.generate.rmat(path, n=3000, m=20_000, seed=3)
    return 3000, np.fromfile(path, np.uint32).reshape(-1, 2)


@pytest.mark.parametrize("batch", [1, 7, 1000, 20_000])
@pytest.mark.parametrize("k", [2, 8, 32])
def test_skewed_graph_equals_the_oracle(skewed, k, batch):
    n, edges = skewed
    for options in ({}, {"strict": False, "passes": 2}, {"balance": 1.0}):
        assert spring(n, edges, k, batch=batch, **options) == oracle(n, edges, k, batch=batch, **options)


def test_default_batches_of_a_large_graph_equal_the_oracle(tmp_path):
    path = tmp_path / "g.bin"
    fp.generate.rmat(path, n=30_000, m=2**18 + 12_345, seed=5)
    edges = np.fromfile(path, np.uint32).reshape(-1, 2)
    expected = oracle(30_000, edges, 8)
    assert spring(30_000, edges, 8) == expected
    assert spring(30_000, edges, 8, batch=1) != expected
    # One record less, and the rule is the sequential one.
    few = edges[: 2**18 - 1]
    assert spring(30_000, few, 8) == spring(30_000, few, 8, batch=1)


@given(
    edge_lists(40, 150), st.integers(1, 50), st.sampled_from([1.0, 1.05, 1.5]), st.sampled_from([None, 1, 7])
)
def test_strict_cap_is_kept(graph, k, balance, batch):
    n, edges = graph
    partition = fp.spring(fp.open_graph(edges, num_vertices=n), k, balance=balance, batch=batch)
    assert partition.cap == math.ceil(min(balance, k) * n / k)
    assert np.bincount(partition.assignment, minlength=k).max() <= partition.cap
    assert partition.loads.tolist() == np.bincount(partition.assignment, minlength=k).tolist()


def test_the_papers_rule_may_exceed_the_cap_and_the_default_may_not():
    # Five triangles for two parts: no two of them fit into one part of ceil(1.0 * 15 / 2) = 8.
    triangles = np.array(
        [[3 * i + a, 3 * i + b] for i in range(5) for a, b in ((0, 1), (1, 2), (0, 2))], np.uint32
    )
    paper = fp.spring(triangles, 2, balance=1.0, strict=False)
    strict = fp.spring(triangles, 2, balance=1.0)
    assert paper.cap is None
    assert sorted(paper.loads) == [6, 9]
    assert strict.cap == 8
    assert sorted(strict.loads) == [7, 8]


def test_split_cluster_fills_the_parts_in_vertex_order():
    # A path of five, then one of four, for two parts of at most five.
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 4], [5, 6], [6, 7], [7, 8]], np.uint32)
    for strict in (True, False):
        assert spring(9, edges, 2, strict=strict) == oracle(9, edges, 2, strict=strict)
    n, edges = 10, np.array([[v, v + 1] for v in range(9)], np.uint32)
    assert spring(n, edges, 3) == oracle(n, edges, 3)


def test_isolated_vertices_balance_the_parts_in_id_order():
    edges = np.array([[4, 5], [5, 6], [6, 4]], np.uint32)
    partition = spring(9, edges, 3)
    assert partition == oracle(9, edges, 3)
    assert sorted(np.bincount(partition)) == [3, 3, 3]
    assert spring(5, edges[:0], 2) == [0, 1, 0, 1, 0]


def test_loops_change_nothing():
    edges = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]], np.uint32)
    loops = np.insert(edges, [0, 2, 6], [[3, 3], [0, 0], [5, 5]], axis=0)
    assert spring(6, loops, 2) == spring(6, edges, 2)
    assert spring(3, np.array([[1, 1], [2, 2]], np.uint32), 2) == [0, 1, 0]


def test_degrees_that_are_known_need_no_counting(skewed):
    n, edges = skewed
    opened = fp.open_graph(edges, num_vertices=n)
    degrees = opened.degrees()
    partition = fp.spring(opened, 8, degrees=degrees)
    assert partition.assignment.tolist() == spring(n, edges, 8)
    np.testing.assert_array_equal(
        fp.spring(opened, 8, degrees=degrees.astype(np.int64)).assignment, partition.assignment
    )


@pytest.mark.parametrize(
    ("degrees", "error", "text"),
    [
        (np.ones(3, np.uint32), fp.errors.ParameterError, "degrees: 3 degrees for 4 vertices"),
        (np.ones(4, np.uint32), fp.errors.ParameterError, "degrees: they sum to 4. The records have 6 ends"),
        (np.array([1, 2, 2, -1]), fp.errors.ParameterError, "degrees: values must fit in uint32"),
        (
            np.array([1.0, 2.0, 2.0, 1.0]),
            TypeError,
            "degrees: expected a one-dimensional numpy array of integers",
        ),
        ([1, 2, 2, 1], TypeError, "degrees: expected a one-dimensional numpy array"),
    ],
)
def test_degrees_of_another_graph_are_refused(degrees, error, text):
    with pytest.raises(error, match=text):
        fp.spring(np.array([[0, 1], [1, 2], [2, 3]]), 2, degrees=degrees)


def test_more_parts_than_vertices_leave_parts_empty():
    with pytest.warns(
        fp.errors.CapacityWarning, match=r"k=7 parts for 3 vertices. At least 4 parts are empty"
    ):
        partition = fp.spring(np.array([[0, 1], [1, 2]]), 7)
    assert partition.loads.sum() == 3
    assert partition.cap == 1


@pytest.mark.parametrize("k", [1, 3])
def test_empty_graph_and_one_vertex(k):
    assert spring(0, np.zeros((0, 2), np.uint32), k) == []
    assert spring(1, np.zeros((0, 2), np.uint32), k) == [0]
    assert spring(1, np.array([[0, 0]], np.uint32), k) == [0]
    assert set(spring(50, np.array([[0, 1]], np.uint32), 1)) == {0}
