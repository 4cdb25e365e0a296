"""`fp.edges_of`: edge partitions made of vertex partitions, and the refinement that `hep` and `sigma` share with it."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from soaked import examples


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A planted graph of 3,000 vertices in a file."""
    out = tmp_path_factory.mktemp("graph") / "g.bin"
    fp.generate.planted(out, n=3000, m=36_000, classes=12, features=1, seed=1)
    return fp.open_graph(out)


@pytest.fixture(scope="module")
def vertices(graph):
    """A partition of its vertices."""
    return fp.multilevel(graph, 8, volume_balance=1.05)


def test_fewer_replicas_than_the_streams_make(graph, vertices):
    p = fp.edges_of(vertices.graph, vertices)
    assert p.rf < min(fp.algorithms.hdrf(graph, 8).rf, fp.sigma(graph, 8, of="edges").rf)
    assert (p.algorithm, p.k, p.assignment.dtype) == ("edges_of", 8, np.uint8)
    assert p.cap == np.ceil(1.05 * 36_000 / 8)
    assert p.loads.max() <= p.cap
    assert (np.bincount(p.assignment, minlength=8) == p.loads).all()
    assert p.parameters["origin"] == {"algorithm": "multilevel", "parameters": vertices.parameters}
    assert p.graph is graph
    assert fp.edges_of(vertices.graph, vertices, passes=0).rf > p.rf


def test_threads_change_nothing(vertices):
    expected = fp.edges_of(vertices.graph, vertices, threads=1)
    for threads in (2, 3, 8):
        assert fp.edges_of(vertices.graph, vertices, threads=threads) == expected


def test_partitions_of_every_form(graph, vertices, tmp_path):
    expected = fp.edges_of(vertices.graph, vertices)
    assert fp.edges_of(graph, vertices.assignment) == expected
    assert fp.edges_of(graph.path, vertices.assignment.tolist()) == expected
    for name in ("p.npy", "p.txt", "p.parquet", "parts"):
        vertices.save(tmp_path / name, graph=graph if name == "parts" else None)
        assert fp.edges_of(graph, tmp_path / name) == expected
    # Other bounds and weights of the vertex partition do not matter.
    balanced = fp.spring(graph, 8, balance_on=np.arange(3000) % 7 == 0)
    assert fp.edges_of(balanced.graph, balanced).loads.max() <= expected.cap


def test_parts_in_a_file(vertices, tmp_path):
    expected, out = fp.edges_of(vertices.graph, vertices), tmp_path / "edges.npy"
    mapped = fp.edges_of(vertices.graph, vertices, out=out)
    assert isinstance(mapped.assignment, np.memmap)
    assert mapped == expected
    assert (np.load(out) == expected.assignment).all()
    expected.save(tmp_path / "parts", graph=vertices.graph)
    opened = fp.open_partition(tmp_path / "parts")
    assert (opened, opened.parameters) == (expected, expected.parameters)


def test_weights_of_records_are_not_read():
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    graph = fp.open_graph(edges, weights=[9, 1, 9, 1])
    with pytest.warns(fp.errors.GraphWarning, match="edges_of"):
        p = fp.edges_of(graph, [0, 1, 1, 0], balance=1.5)
    assert p == fp.edges_of(edges, [0, 1, 1, 0], balance=1.5)


@pytest.mark.parametrize(
    ("partition", "arguments", "error", "text"),
    [
        ([0, 1], {}, fp.errors.GraphFormatError, "it has 2 vertices, the graph has 4"),
        ([0, 1, 5, 0], {"k": 2}, fp.errors.ParameterError, "vertex 2 has part 5, outside 0..1"),
        ([0, 1, float("nan"), 0], {}, TypeError, "expected integers, got dtype float64"),
        ("nowhere.npy", {}, FileNotFoundError, "nowhere.npy"),
        ([0, 1, 1, 0], {"balance": 0.9}, fp.errors.ParameterError, "balance: 0.9 is not a ratio"),
        ([0, 1, 1, 0], {"bands": 65}, fp.errors.ParameterError, "bands: 65 is not between 1"),
        ([0, 1, 1, 0], {"passes": -1}, fp.errors.ParameterError, "passes: -1 is not between 0"),
        ([0, 1, 1, 0], {"balance_weight": -1}, fp.errors.ParameterError, "balance_weight: -1"),
        (
            [0, 1, 1, 0],
            {"out": "parts.txt"},
            fp.errors.ParameterError,
            "out: parts.txt does not end with .npy",
        ),
        ([0, 1, 1, 0], {"memory_limit": 100}, fp.errors.MemoryBudgetError, "edges_of on 4 vertices"),
        ([0, 1, 1, 0], {"objective": "cut"}, TypeError, "edges_of() has no parameter 'objective'"),
    ],
)
def test_refusals(partition, arguments, error, text):
    with pytest.raises(error, match=re.escape(text)):
        fp.edges_of(np.array([[0, 1], [1, 2], [2, 3]]), partition, **arguments)


def test_refusals_of_partitions(graph):
    with pytest.raises(
        TypeError, match=r"edges_of\(\) takes the graph first, as in edges_of\(graph, partition\)"
    ):
        fp.edges_of(fp.algorithms.hash(graph, 8), graph)
    with pytest.raises(fp.errors.ParameterError, match=r"edges_of\(\) needs a partition of the vertices"):
        fp.edges_of(graph, fp.algorithms.dbh(graph, 4))
    with pytest.raises(fp.errors.ParameterError, match="k: 4, but the partition has 8 parts"):
        fp.edges_of(graph, fp.algorithms.hash(graph, 8), k=4)
    with pytest.raises(fp.errors.GraphFormatError, match="belongs to another graph"):
        fp.edges_of(np.array([[0, 1], [2999, 3]]), fp.algorithms.hash(graph, 8))


@pytest.mark.parametrize(("name", "given"), [("hep", {"tau": 1}), ("sigma", {"of": "edges"})])
def test_partitioners_refine_their_results(graph, name, given):
    made = getattr(fp.algorithms, name)(graph, 8, **given)
    refined = getattr(fp.algorithms, name)(graph, 8, refine=True, **given)
    assert refined.rf < made.rf
    assert refined.cap == made.cap
    assert refined.loads.max() <= refined.cap
    assert (refined.parameters["refine"], made.parameters["refine"]) == (True, False)
    assert getattr(fp.algorithms, name)(graph, 8, refine=True, threads=3, **given) == refined
    parts = made.evaluate().parts["replicas"] - refined.evaluate().parts["replicas"]
    assert parts.min() >= 0


edge = st.tuples(st.integers(0, 19), st.integers(0, 19))


@pytest.mark.filterwarnings("ignore::fastpart.errors.CapacityWarning")  # more parts than records
@examples(20)
@given(st.lists(edge, min_size=1, max_size=60), st.integers(1, 30), st.data())
def test_any_partition_of_any_graph(records, k, data):
    graph = fp.open_graph(np.array(records, dtype=np.uint32), num_vertices=20)
    parts = data.draw(st.lists(st.integers(0, k - 1), min_size=20, max_size=20))
    plain, p = (fp.edges_of(graph, parts, k=k, passes=passes, balance=1.2) for passes in (0, 5))
    assert len(p) == len(records)
    assert p.loads.max() <= p.cap
    assert p.rf <= plain.rf


def test_the_command_line(graph, vertices, tmp_path, capsys):
    start, out = tmp_path / "parts", tmp_path / "edges"
    vertices.save(start, graph=graph)
    assert main(["edges-of", str(graph.path), str(start), "-o", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["algorithm"] == "edges_of"
    expected = fp.edges_of(graph, vertices)
    assert fp.open_partition(out) == expected
    flat = tmp_path / "p.npy"
    assert main(["edges-of", str(graph.path), str(start), "-o", str(flat), "-q"]) == 0
    assert (np.load(flat) == expected.assignment).all()
    capsys.readouterr()
    for arguments, code, text in [
        ([str(tmp_path / "none")], 1, "No such file"),
        ([str(start), "--balance", "0.5"], 2, "balance: 0.5"),
        ([str(start), "-k", "4"], 2, "k: 4, but"),
        ([str(flat)], 1, "it has 36000 vertices"),
        ([], 2, "PARTITION"),
    ]:
        assert main(["edges-of", str(graph.path), *arguments]) == code
        assert text.lower() in capsys.readouterr().err.lower()
