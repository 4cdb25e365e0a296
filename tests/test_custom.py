"""Partitioners of the user's own: called with every record once per pass, and believed in nothing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from strategies import edge_lists

RING = np.array([[v, (v + 1) % 6] for v in range(6)], dtype=np.uint32)


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
@given(edge_lists(), st.integers(1, 8), st.integers(1, 60), st.integers(1, 3))
def test_the_function_sees_the_stream_in_order(graph, k, block, passes):
    n, edges = graph
    seen = []

    def partitioner(records):
        assert records.dtype == np.uint32
        assert len(records) <= block
        seen.extend(records.tolist())
        return records.sum(axis=1) % k

    made = fp.algorithms.custom(
        fp.open_graph(edges, num_vertices=n), k, partitioner, of="edges", block=block, passes=passes
    )
    assert seen == edges.tolist() * passes
    assert made.assignment.tolist() == (edges.sum(axis=1) % k).tolist()
    assert made.algorithm == "partitioner"
    assert fp.evaluate(fp.open_graph(edges, num_vertices=n), made).summary["k"].item() == k


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")
@given(edge_lists(), st.integers(1, 8))
def test_vertices_never_named_level_the_parts(graph, k):
    n, edges = graph
    made = fp.algorithms.custom(
        fp.open_graph(edges, num_vertices=n), k, lambda records: (records[:, 0], records[:, 0] % k)
    )
    named = set(edges[:, 0].tolist())
    loads = [sum(v % k == part for v in named) for part in range(k)]
    for v in range(n):
        if v not in named:
            assert made.assignment[v] == loads.index(min(loads))
            loads[made.assignment[v]] += 1
        else:
            assert made.assignment[v] == v % k
    assert made.loads.tolist() == loads


def test_a_vertex_named_again_moves():
    turns = iter([0, 1])
    made = fp.algorithms.custom(
        RING, 2, lambda records: (records[:, 0], np.full(len(records), next(turns))), passes=2
    )
    assert made.assignment.tolist() == [1] * 6


def test_an_array_knows_its_graph(tmp_path):
    made = fp.algorithms.custom(RING, 2, [0, 0, 0, 1, 1, 1], balance=1.0, name="mine")
    assert (made.algorithm, made.cap, made.checksum) == ("mine", 3, fp.open_graph(RING).identify()[1])
    made.save(tmp_path / "parts", graph=RING)
    assert fp.open_partition(tmp_path / "parts", graph=RING).algorithm == "mine"
    with pytest.raises(fp.errors.GraphFormatError, match="another graph"):
        fp.evaluate(RING[:, ::-1].copy(), made)


@pytest.mark.parametrize(
    ("answer", "of", "error", "match"),
    [
        (lambda r: r[:, 0], "edges", fp.errors.ParameterError, r"record 2 got part 2, outside 0\.\.1"),
        (
            lambda r: r[1:, 0] % 2,
            "edges",
            fp.errors.ParameterError,
            "5 parts for the 6 records from record 0 on",
        ),
        (lambda r: r / 2, "edges", TypeError, "float64 of shape"),
        (lambda r: None, "edges", TypeError, "object"),
        (lambda r: r[:, 0], "vertices", TypeError, r"expected a pair \(vertices, parts\) or None"),
        (
            lambda r: (r[:, 0] + 1, r[:, 0] % 2),
            "vertices",
            fp.errors.ParameterError,
            r"a vertex outside 0\.\.5",
        ),
        (
            lambda r: (r[:, 0], -r[:, 0].astype(int)),
            "vertices",
            fp.errors.ParameterError,
            "vertex 1 got part -1",
        ),
        (lambda r: (r[:, 0], [0]), "vertices", fp.errors.ParameterError, "6 vertices with 1 parts"),
        ([0, 1], "vertices", fp.errors.ParameterError, "2 parts for 6 items. Expected one per vertex"),
        ([0, 1, 2, 0, 0, 0], "edges", fp.errors.ParameterError, "record 2 has part 2"),
    ],
)
def test_answers_are_checked(answer, of, error, match):
    with pytest.raises(error, match=match):
        fp.algorithms.custom(RING, 2, answer, of=of)


def test_a_cap_that_is_broken_is_named():
    with pytest.raises(fp.errors.CapacityError, match="part 1 has 4 vertices, more than 3"):
        fp.algorithms.custom(RING, 2, [0, 0, 1, 1, 1, 1], balance=1.0)


def test_exceptions_of_the_function_pass():
    def broken(records):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fp.algorithms.custom(RING, 2, broken)


def test_a_file_that_changes_is_noticed(tmp_path):
    file = tmp_path / "g.bin"
    file.write_bytes(RING.tobytes())

    def meddling(records):
        file.write_bytes(RING.tobytes() * 2)
        return records[:, 0] % 2

    with pytest.raises(fp.errors.EdgeFileChangedError):
        fp.algorithms.custom(fp.open_graph(file), 2, meddling, of="edges", block=2)
