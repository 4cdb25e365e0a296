"""Random and hashed parts: every item in one part, sizes as promised, the order seeded."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from strategies import edge_lists


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
@given(edge_lists(loops=False), st.integers(1, 20), st.integers(0, 2**64 - 1), st.integers(1, 3))
def test_sizes_differ_by_at_most_one(graph, k, seed, threads):
    n, edges = graph
    opened = fp.open_graph(edges, num_vertices=n)
    for of, items in (("vertices", n), ("edges", len(edges))):
        made = fp.algorithms.random(opened, k, of=of, seed=seed, threads=threads)
        assert made.of == of
        assert len(made) == items
        assert made.loads.tolist() == np.bincount(made.assignment, minlength=k).tolist()
        assert made.loads.max() - made.loads.min() <= 1
        assert made.loads.max() <= made.cap


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
@given(edge_lists(), st.integers(1, 20))
def test_loops_go_where_their_vertex_is(graph, k):
    n, edges = graph
    made = fp.algorithms.random(fp.open_graph(edges, num_vertices=n), k, of="edges")
    loads = [0] * k
    holds = [set() for _ in range(n)]
    for (u, v), part in zip(edges, made.assignment, strict=True):
        if u != v:
            loads[part] += 1
            holds[u].add(part)
            holds[v].add(part)
    for (u, v), part in zip(edges, made.assignment, strict=True):
        if u == v:
            held = [(loads[p], p) for p in holds[u] if loads[p] < made.cap]
            expected = min(held or [(load, p) for p, load in enumerate(loads)])[1]
            assert part == expected
            loads[part] += 1
            holds[u].add(part)
    assert made.loads.tolist() == loads
    assert max(loads) <= made.cap


@given(st.integers(0, 2**64 - 1), st.integers(1, 9))
def test_a_hash_is_a_function_of_the_id(seed, k):
    few, many = (
        fp.algorithms.hash(fp.open_graph(np.array([[0, 1]]), num_vertices=n), k, seed=seed).assignment
        for n in (10, 50)
    )
    assert many[:10].tolist() == few.tolist()


def test_seeds_make_orders():
    edges = np.array([[v, v + 1] for v in range(200)])
    for of in ("vertices", "edges"):
        one, other = (fp.algorithms.random(edges, 4, of=of, seed=seed).assignment for seed in (1, 2))
        assert not np.array_equal(one, other)
        assert np.array_equal(one, fp.algorithms.random(edges, 4, of=of, seed=1).assignment)


def test_parts_in_a_file(tmp_path):
    edges = np.array([[v, v + 1] for v in range(2000)] + [[7, 7]])
    for k in (4, 300, 40_000):
        out = tmp_path / f"{k}.npy"
        with pytest.warns(fp.errors.CapacityWarning) if k > len(edges) else _nothing():
            in_memory = fp.algorithms.random(edges, k, of="edges")
        with pytest.warns(fp.errors.CapacityWarning) if k > len(edges) else _nothing():
            mapped = fp.algorithms.random(edges, k, of="edges", out=out)
        assert isinstance(mapped.assignment, np.memmap)
        assert mapped.assignment.dtype == in_memory.assignment.dtype
        assert np.array_equal(mapped.assignment, in_memory.assignment)
        assert np.array_equal(np.load(out), in_memory.assignment)
        assert [file.name for file in tmp_path.iterdir() if str(k) in file.name] == [out.name]


def test_memory_that_does_not_suffice_names_the_way_out(tmp_path):
    edges = np.array([[v, v + 1] for v in range(5000)])
    with pytest.raises(fp.errors.MemoryBudgetError, match="out="):
        fp.algorithms.random(edges, 4, of="edges", memory_limit=4000)
    assert (
        len(fp.algorithms.random(edges, 4, of="edges", memory_limit=4000, out=tmp_path / "parts.npy")) == 5000
    )


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"of": "records"}, "of: unknown value 'records'. Valid values are 'vertices', 'edges'"),
        ({"of": "edges", "balance_on": [1, 1]}, "balance_on"),
        ({"out": "parts.npy"}, 'out: needs of="edges"'),
        (
            {"of": "edges", "out": "parts.txt"},
            r"out: parts.txt does not end with \.npy, the format of the parts",
        ),
    ],
)
def test_refusals(options, match):
    with pytest.raises(fp.errors.ParameterError, match=match):
        fp.algorithms.random(np.array([[0, 1]]), 2, **options)


def _nothing():
    import contextlib

    return contextlib.nullcontext()
