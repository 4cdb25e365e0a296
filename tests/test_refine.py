"""`fp.refine`: any partition of the vertices, never worse, within the bounds that it was made with."""

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart import _core
from fastpart.cli import main
from fastpart.partitions import documents
from soaked import examples


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    """A planted graph of 3,000 vertices in a file."""
    out = tmp_path_factory.mktemp("graph") / "g.bin"
    fp.generate.planted(out, n=3000, m=36_000, classes=12, features=1, seed=1)
    return fp.open_graph(out)


@pytest.mark.parametrize("name", ["spring", "sigma", "grem", "random", "hash", "ldg", "fennel", "multilevel"])
def test_every_partitioner_gets_better_within_its_bounds(graph, name):
    start = getattr(fp.algorithms, name)(graph, 8)
    p = fp.refine(start.graph, start)
    assert p.cut_ratio <= start.cut_ratio
    assert p.algorithm == "refine"
    assert p.parameters["origin"] == {"algorithm": name, "parameters": start.parameters}
    if start.cap is not None:
        assert p.cap == start.cap
        assert p.parameters["balance"] == start.parameters.get("balance", 1.0)
    else:
        assert p.parameters["balance"] == 1.03
    assert p.loads.max() <= p.cap
    if start.volume_cap is not None:
        assert p.volume_cap <= start.volume_cap
        assert p.volume_loads.max() <= p.volume_cap
    assert p.graph is graph


def test_rounds_reproduce_the_result_on_any_number_of_threads(graph):
    start = fp.spring(graph, 8)
    p = fp.refine(start.graph, start, seed=3)
    rounds = p.parameters["rounds"]
    assert 1 < rounds <= 16
    for threads in (1, 2, 3, 8):
        assert fp.refine(start.graph, start, seed=3, rounds=rounds, threads=threads) == p
    assert fp.refine(start.graph, start, time_limit=0) == start
    assert fp.refine(start.graph, start, time_limit=0).parameters["rounds"] == 0
    assert fp.refine(start.graph, start, rounds=0) == start
    limited = fp.refine(start.graph, start, time_limit=1e-9, rounds=2)
    assert fp.refine(start.graph, start, rounds=max(limited.parameters["rounds"], 0)) == limited


def test_refining_again_keeps_the_bounds_and_the_whole_origin(graph):
    once = fp.refine(graph, fp.sigma(graph, 8), min_balance=0.8)
    twice = fp.refine(once.graph, once)
    assert twice.cut_ratio <= once.cut_ratio
    for name in ("balance", "volume_balance", "min_balance", "objective"):
        assert twice.parameters[name] == once.parameters[name]
    assert twice.parameters["origin"]["parameters"]["origin"]["algorithm"] == "sigma"
    assert twice.loads.min() >= int(0.8 * 3000 / 8)


def test_starts_of_every_form(graph, tmp_path):
    start = fp.spring(graph, 8)
    expected = fp.refine(graph, start.assignment, balance=1.05)
    assert expected.parameters["origin"] == {"algorithm": "user", "parameters": {}}
    assert fp.refine(graph, start.assignment.tolist(), balance=1.05) == expected
    assert fp.refine(graph, start.assignment.astype(np.uint64), balance=1.05) == expected
    for name in ("p.npy", "p.txt", "p.parquet", "parts"):
        start.save(tmp_path / name, graph=graph if name == "parts" else None)
        assert fp.refine(graph, tmp_path / name, balance=1.05) == expected
    assert fp.refine(graph, tmp_path / "parts").parameters["origin"]["algorithm"] == "spring"
    refined = fp.refine(graph, tmp_path / "parts")
    refined.save(tmp_path / "refined", graph=graph)
    opened = fp.open_partition(tmp_path / "refined")
    assert (opened.algorithm, opened.parameters) == ("refine", refined.parameters)
    assert fp.refine(graph, np.zeros(3000, int), k=4).loads.max() <= 773


def test_weights_multiply_the_cut():
    edges = np.array([[0, 1], [1, 2], [2, 3], [3, 0]])
    graph = fp.open_graph(edges, weights=[9, 1, 9, 1])
    p = fp.refine(graph, [0, 1, 1, 0], balance=1.0)
    assert p.evaluate().weighted_cut == 2
    assert fp.refine(edges, [0, 1, 1, 0], balance=1.0).assignment.tolist() == [0, 1, 1, 0]


def test_train_balance_is_kept(graph):
    train = np.arange(3000) % 7 == 0
    start = fp.spring(graph, 8, balance_on=train)
    p = fp.refine(start.graph, start, balance_on=train)
    assert p.cut_ratio < start.cut_ratio
    assert p.weight_loads.max() <= p.weight_cap == start.weight_cap
    with pytest.raises(fp.errors.ParameterError, match="balance_on: the partition balances weights"):
        fp.refine(start.graph, start)
    several = fp.refine(start.graph, start, balance_on=[train, ~train], volume_balance=1.3)
    assert (several.weight_loads.max(axis=1) <= several.weight_cap).all()
    assert several.volume_loads.max() <= several.volume_cap


def test_a_start_that_breaks_a_bound_is_repaired(graph):
    p = fp.refine(graph, np.zeros(3000, int), k=6, min_balance=0.9, volume_balance=1.2)
    assert p.loads.max() <= p.cap == 515
    assert p.loads.min() >= 450
    assert p.volume_loads.max() <= p.volume_cap


def test_the_halo_never_grows(graph):
    start = fp.multilevel(graph, 8, objective="halo", effort="quick")
    p = fp.refine(start.graph, start)
    assert p.parameters["objective"] == "halo"
    assert p.evaluate().halo_rf <= start.evaluate().halo_rf
    assert fp.refine(graph, fp.sigma(graph, 8)).parameters["objective"] == "cut"


def test_machines_are_kept(graph):
    start = fp.multilevel(graph, 4, machines=[2, 2], effort="quick")
    p = fp.refine(start.graph, start)
    assert p.parameters["machines"] == [2, 2]

    def cost(p):
        matrix = p.evaluate().cut_matrix
        return np.triu(matrix, 1).sum() + 7 * matrix[:2, 2:].sum()

    assert cost(p) <= cost(start)
    with pytest.raises(fp.errors.ParameterError, match="objective"):
        fp.refine(start.graph, start, objective="halo")


@pytest.mark.parametrize(
    ("partition", "arguments", "error", "text"),
    [
        ([0, 1], {}, fp.errors.GraphFormatError, "it has 2 vertices, the graph has 4"),
        ([0, 1, -1, 0], {}, fp.errors.ParameterError, "vertex 2 has part -1, outside 0..1"),
        ([0, 1, 5, 0], {"k": 2}, fp.errors.ParameterError, "vertex 2 has part 5, outside 0..1"),
        ([0, 1, float("nan"), 0], {}, TypeError, "expected integers, got dtype float64"),
        ([[0, 1], [1, 0]], {}, TypeError, "expected one part per vertex, got shape (2, 2)"),
        ([0, 1, 2**40, 0], {}, fp.errors.ParameterError, "k: "),
        ("nowhere.npy", {}, FileNotFoundError, "nowhere.npy"),
        ("nowhere.csv", {}, FileNotFoundError, "nowhere.csv"),
        ([0, 1, 1, 0], {"balance": 0.9}, fp.errors.ParameterError, "balance: 0.9 is not a ratio"),
        ([0, 1, 1, 0], {"rounds": -1}, fp.errors.ParameterError, "rounds: -1 is not between 0"),
        ([0, 1, 1, 0], {"time_limit": -1}, fp.errors.ParameterError, "time_limit: -1 seconds"),
        ([0, 1, 1, 0], {"objective": "modularity"}, fp.errors.ParameterError, "objective"),
        ([0, 1, 1, 0], {"balance_on": [1]}, fp.errors.ParameterError, "balance_on: 1 weights for 4 vertices"),
        (
            [0, 1, 1, 0],
            {"min_balance": 2},
            fp.errors.ParameterError,
            "min_balance: 2 is not a ratio from 0 to 1",
        ),
        ([0, 1, 1, 0], {"k": 0}, fp.errors.ParameterError, "k: 0"),
        ([0, 1, 1, 0], {"memory_limit": 100}, fp.errors.MemoryBudgetError, "refine on 4 vertices, 2 parts"),
    ],
)
def test_refusals(partition, arguments, error, text):
    with pytest.raises(error, match=re.escape(text)):
        fp.refine(np.array([[0, 1], [1, 2], [2, 3]]), partition, **arguments)


def test_refusals_of_partitions(graph, tmp_path):
    with pytest.raises(
        TypeError, match=r"refine\(\) takes the graph first, as in refine\(graph, partition\)"
    ):
        fp.refine(fp.algorithms.hash(graph, 8), graph)
    with pytest.raises(fp.errors.ParameterError, match="parts of edges"):
        fp.refine(graph, fp.algorithms.dbh(graph, 4))
    fp.algorithms.dbh(graph, 4).save(tmp_path / "edges")
    with pytest.raises(
        fp.errors.ParameterError,
        match=r"partition: .*edges holds parts of edges\. Pass a partition of the vertices",
    ):
        fp.refine(graph, tmp_path / "edges")
    with pytest.raises(fp.errors.ParameterError, match="k: 4, but the partition has 8 parts"):
        fp.refine(graph, fp.algorithms.hash(graph, 8), k=4)
    other = np.array([[0, 1], [2999, 3]])
    with pytest.raises(fp.errors.GraphFormatError, match="belongs to another graph"):
        fp.refine(other, fp.algorithms.hash(graph, 8))
    with pytest.raises(TypeError, match=r"refine\(\) "):
        fp.refine()


@pytest.mark.parametrize("name", ["grem", "sigma"])
def test_partitioners_refine_their_results(graph, name):
    made, refined = (
        getattr(fp.algorithms, name)(graph, 8),
        getattr(fp.algorithms, name)(graph, 8, refine=True),
    )
    assert refined.cut_ratio < made.cut_ratio
    assert (refined.cap, refined.volume_cap) == (made.cap, made.volume_cap)
    assert refined.parameters["refine"] is True
    assert refined == fp.refine(made.graph, made)
    assert refined.algorithm == name
    with pytest.raises(fp.errors.MemoryBudgetError):
        getattr(fp.algorithms, name)(graph, 8, refine=True, memory_limit=70 * 3000)


def test_the_adjacency_may_lie_in_a_file(tmp_path):
    """72 bytes per vertex are enough where the adjacency takes 400."""
    fp.generate.planted(tmp_path / "g.bin", n=4000, m=200_000, classes=8, features=1, seed=1)
    start = np.arange(4000) % 8
    expected = fp.refine(tmp_path / "g.bin", start, rounds=2)
    assert (
        fp.refine(tmp_path / "g.bin", start, rounds=2, memory_limit=1_450_000, tmp_dir=tmp_path) == expected
    )
    with pytest.raises(fp.errors.MemoryBudgetError, match="refine on 4000 vertices, 8 parts"):
        fp.refine(tmp_path / "g.bin", start, memory_limit=72 * 4000)


edge = st.tuples(st.integers(0, 19), st.integers(0, 19))


@examples(20)
@given(st.lists(edge, min_size=1, max_size=60), st.integers(1, 20), st.data())
def test_any_partition_of_any_graph(records, k, data):
    graph = fp.open_graph(np.array(records, dtype=np.uint32), num_vertices=20)
    parts = data.draw(st.lists(st.integers(0, k - 1), min_size=20, max_size=20))
    start = fp.VertexPartition(parts, k)
    p = fp.refine(graph, start, balance=1.2)
    assert p.k == k
    assert p.loads.max() <= p.cap
    if start.loads.max() <= p.cap:
        assert p.cut_ratio <= fp.evaluate(graph, start).cut_ratio


def test_the_registry_describes_it():
    for algorithm in _core.successors():
        function = getattr(fp.algorithms, algorithm.name)
        known = documents.signature(algorithm).parameters
        assert list(known)[:3] == ["graph", "partition", "k"]
        for name in known:
            assert re.search(rf"^{name}( :|, )", function.__doc__, re.MULTILINE) or name in function.__doc__
        assert algorithm.name in fp.algorithms.__all__


def test_the_command_line(graph, tmp_path, capsys):
    start, out = tmp_path / "parts", tmp_path / "refined"
    fp.spring(graph, 8).save(start, graph=graph)
    assert main(["refine", str(graph.path), str(start), "-o", str(out), "--seed", "2", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["summary"]["algorithm"] == "refine"
    assert fp.open_partition(out) == fp.refine(graph, start, seed=2)
    assert fp.open_partition(out).parts[0].vertices.size
    assert (
        main(["refine", str(graph.path), str(start), "--balance", "1.2", "-o", str(tmp_path / "p.npy"), "-q"])
        == 0
    )
    capsys.readouterr()
    for arguments, code, text in [
        ([str(tmp_path / "none")], 1, "No such file"),
        ([str(start), "--balance", "0.5"], 2, "balance: 0.5"),
        ([str(start), "-k", "4"], 2, "k: 4, but"),
        ([str(start), "--round", "4"], 2, "unknown option '--round'"),
        ([str(start), "--objective", "best"], 2, "--objective: unknown value 'best'"),
        ([], 2, "PARTITION"),
    ]:
        assert main(["refine", str(graph.path), *arguments]) == code
        assert text.lower() in capsys.readouterr().err.lower()
