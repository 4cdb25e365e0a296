"""2PS-L and 2PS-HDRF: against an oracle, the caps, and the figures of the published program."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from edge_parts import place_loops, same_whatever_the_input
from soaked import PAIRS, diagonal, examples, some_of
from splitmix import splitmix64
from strategies import edge_lists

pytestmark = pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")

SCORINGS = ("linear", "hdrf")
# Replication factors of the published program on amazon-computers, k = 4, 8, 32.
PUBLISHED = {"linear": {4: 2.42, 8: 4.04, 32: 6.47}, "hdrf": {4: 1.90, 8: 2.55, 32: 3.88}}


def clusters(edges, degree, bound):
    """Return the cluster of each vertex that has one, and the volumes."""
    of, volume = {}, []
    for u, v in edges:
        for end in (u, v):
            if end not in of:
                of[end] = len(volume)
                volume.append(degree[end])
        a, b = of[u], of[v]
        if a == b:
            continue
        mover, target = (u, b) if volume[a] - degree[u] <= volume[b] - degree[v] else (v, a)
        if volume[target] + degree[mover] <= bound:
            volume[of[mover]] -= degree[mover]
            volume[target] += degree[mover]
            of[mover] = target
    return of, volume


def oracle(edges, k, scoring, balance, seed):
    plain = [(u, v) for u, v in edges if u != v]
    degree = {v: sum(v in edge for edge in plain) for edge in plain for v in edge}
    of, volume = clusters(plain, degree, 2 * len(plain) // k)
    of_part, part_of = [0] * k, {}
    for c in sorted(range(len(volume)), key=lambda c: (-volume[c], c)):
        part_of[c] = min(range(k), key=lambda p: (of_part[p], p))
        of_part[part_of[c]] += volume[c]

    cap = math.ceil(min(balance, k) * len(edges) / k)
    loads, holds, parts = [0] * k, [set() for _ in range(k)], [-1] * len(edges)

    def put(record, part):
        parts[record] = part
        loads[part] += 1
        holds[part] |= set(edges[record])

    for record, (u, v) in enumerate(edges):
        if u != v and part_of[of[u]] == part_of[of[v]] and loads[part_of[of[u]]] < cap:
            put(record, part_of[of[u]])
    for record, (u, v) in enumerate(edges):
        if u == v or parts[record] >= 0:
            continue
        gain = {end: 2 - degree[end] / (degree[u] + degree[v]) for end in (u, v)}
        share = volume[of[u]] / (volume[of[u]] + volume[of[v]])
        scores = {}
        for part in range(k) if scoring == "hdrf" else (part_of[of[u]], part_of[of[v]]):
            score = (gain[u] if u in holds[part] else 0.0) + (gain[v] if v in holds[part] else 0.0)
            if scoring == "hdrf":
                score += (max(loads) - loads[part]) * (1 / max(1, *loads))
            else:
                score += share if part == part_of[of[u]] else 0.0
                score += 1 - share if part == part_of[of[v]] else 0.0
            if loads[part] < cap:
                scores[part] = score
        if scores:
            put(record, min(scores, key=lambda part: (-scores[part], part)))
            continue
        hub = min((u, v), key=lambda end: (-degree[end], end))
        part = splitmix64(hub ^ seed) % k
        put(record, part if loads[part] < cap else min(range(k), key=lambda p: (loads[p], p)))
    return place_loops(edges, parts, k, cap), loads, cap


@examples(80)
@given(
    edge_lists(max_n=16),
    st.one_of(st.integers(1, 8), st.integers(60, 140)),
    st.sampled_from(SCORINGS),
    st.sampled_from([1, 1.05, 1.3, 1e308]),
    st.integers(0, 2**64 - 1),
    st.integers(1, 3),
)
def test_as_defined(graph, k, scoring, balance, seed, threads):
    n, edges = graph
    given = {"scoring": scoring, "balance": balance, "seed": seed, "threads": threads}
    made = fp.algorithms.two_phase(fp.open_graph(edges, num_vertices=n), k, **given)
    expected, _, cap = oracle([tuple(edge) for edge in edges.tolist()], k, scoring, balance, seed)
    assert made.assignment.tolist() == expected
    assert made.loads.tolist() == np.bincount(made.assignment, minlength=k).tolist()
    assert made.cap == cap
    assert made.loads.max() <= cap


@pytest.mark.parametrize(("k", "scoring"), some_of(product([7, 70], SCORINGS), diagonal([7, 70], SCORINGS)))
def test_same_whatever_the_threads_and_the_input(rmat, tmp_path, scoring, k):
    def partition(edges, **options):
        return fp.algorithms.two_phase(edges, k, scoring=scoring, **options)

    same_whatever_the_input(partition, rmat, tmp_path)


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("batch", [1, 1000, 10**9])
def test_batches_change_little(rmat, scoring, batch):
    default, other = (fp.algorithms.two_phase(rmat, 8, scoring=scoring, batch=size) for size in (None, batch))
    rf, rf_other = (fp.evaluate(rmat, part).summary["rf"][0] for part in (default, other))
    assert rf_other == pytest.approx(rf, rel=0.05)
    again = fp.algorithms.two_phase(rmat, 8, scoring=scoring, batch=batch, threads=1)
    assert np.array_equal(other.assignment, again.assignment)


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("k", [4, 8, 32])
def test_as_good_as_published(datasets, tmp_path, scoring, k):
    edges = fp.convert(datasets / "amazon-computers.txt.gz", tmp_path / "g.bin")
    found = fp.evaluate(edges, fp.algorithms.two_phase(edges, k, scoring=scoring)).summary
    assert found["rf"][0] <= 1.03 * PUBLISHED[scoring][k]


@PAIRS
@pytest.mark.parametrize("scoring", SCORINGS)
def test_caps_and_quality_on_real_graphs(real_graphs, scoring, pairs):
    """The cap holds, and fewer replicas are made than by chance, on every graph."""
    for (name, edges), k in pairs(real_graphs.items(), (4, 32)):
        made, random = (
            fp.algorithms.two_phase(edges, k, scoring=scoring),
            fp.algorithms.random(edges, k, of="edges"),
        )
        assert made.loads.max() <= made.cap == math.ceil(1.05 * edges.num_edges / k)
        rf, rf_random = (fp.evaluate(edges, part).summary["rf"][0] for part in (made, random))
        assert rf < rf_random, f"{name}, k={k}"


def test_more_records_within_a_part_than_it_takes():
    """Two large cliques in two parts that take a tenth more, and a path: some records of the cliques go elsewhere."""
    clique = [(u, v) for u in range(20) for v in range(u)]
    edges = clique + [(u + 20, v + 20) for u, v in clique] + [(v, v + 1) for v in range(40, 60)]
    for k, scoring in ((4, "linear"), (4, "hdrf"), (8, "linear"), (8, "hdrf")):
        made = fp.algorithms.two_phase(np.array(edges), k, scoring=scoring, balance=1.0)
        assert made.assignment.tolist() == oracle(edges, k, scoring, 1.0, 0)[0]
        assert made.loads.max() <= made.cap


def test_memory_that_does_not_suffice_names_the_way_out(tmp_path):
    edges = np.array([[v, (v + 1) % 5] for v in range(5)] * 100_000)
    needed = 30_000_000
    with pytest.raises(fp.errors.MemoryBudgetError, match="out="):
        fp.algorithms.two_phase(edges, 300, memory_limit=needed // 4)
    assert (
        len(fp.algorithms.two_phase(edges, 300, memory_limit=needed, out=tmp_path / "parts.npy")) == 500_000
    )


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"scoring": "greedy"}, "scoring: unknown value 'greedy'. Valid values are 'linear', 'hdrf'"),
        ({"balance": 0.9}, "balance: 0.9"),
        ({"batch": 0}, "batch: 0"),
        ({"k": 0}, "k: 0"),
        ({"out": "parts.txt"}, r"out: parts.txt"),
    ],
)
def test_refusals(options, match):
    with pytest.raises(fp.errors.ParameterError, match=match):
        fp.algorithms.two_phase(np.array([[0, 1]]), **{"k": 2, **options})
