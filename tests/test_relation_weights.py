"""Weights of records by relation: factors of the cut, alone or with weights of the records."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fastpart as fp
from fastpart.cli import main
from fastpart.core.options import run_options
from fastpart.graphs.graph import weighted_by_relation
from random_typed import random_typed_graph, records_of, typed_graph
from soaked import examples

FACTORS = {"cites": 2.0, "writes": 0.5}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return random_typed_graph(tmp_path_factory.mktemp("typed"), seed=2)


def per_record(graph, factors):
    """Return the factor of each record."""
    return np.concatenate([np.full(each.m, factors.get(each.name, 1.0)) for each in graph.relations])


def weighted_cut(graph, parts, weights):
    records = records_of(graph)
    return float(weights[parts[records[:, 0]] != parts[records[:, 1]]].sum())


def test_the_weighted_cut_counts_each_record_with_its_factor(graph):
    parts = np.arange(graph.num_vertices) % 4
    found = fp.evaluate(graph, parts, relation_weights=FACTORS)
    each = per_record(graph, FACTORS)
    assert found.weighted_cut == weighted_cut(graph, parts, each)
    loops = records_of(graph)[:, 0] == records_of(graph)[:, 1]
    assert found.weighted_cut_ratio == pytest.approx(found.weighted_cut / each[~loops].sum())
    plain = fp.evaluate(graph, parts)
    assert found.summary.select(plain.summary.columns).equals(plain.summary)
    assert "weighted_cut" not in plain.summary.columns
    assert graph.weights is None


@examples(10)
@given(
    seed=st.integers(0, 2**32 - 1),
    factors=st.dictionaries(
        st.sampled_from(["cites", "has_topic", "writes"]),
        st.floats(0, 1e6, allow_subnormal=False),
        min_size=1,
    ),
    whole=st.sampled_from([None, 1, 7, 2**32 - 1]),
)
def test_factors_multiply_the_weights_of_records(tmp_path_factory, graph, seed, factors, whole):
    own = np.ones(graph.num_edges)
    if whole is None:
        opened = graph
    else:
        own = np.random.default_rng(seed).integers(0, whole, size=graph.num_edges, endpoint=True)
        opened = fp.open_graph(graph.path, weights=own)
    expected = own * per_record(graph, factors)
    if not expected.any():
        with pytest.raises(fp.errors.ParameterError, match="all weights are 0"):
            weighted_by_relation(opened, factors, run_options())
        return
    made = weighted_by_relation(opened, factors, run_options())
    found = made.weights / made.weight_scale
    assert found.dtype == np.float64
    assert made.weights.dtype == np.uint32
    np.testing.assert_allclose(found, expected, rtol=0, atol=max(expected.max() * 2.0**-30, 1e-300))
    assert ((found > 0) == (expected > 0)).all()
    assert (made.types, made.relations) == (graph.types, graph.relations)


def test_halves_and_whole_numbers_stay_small(graph):
    made = weighted_by_relation(graph, FACTORS, run_options())
    assert made.weight_scale == 2
    assert sorted(set(made.weights.tolist())) == [1, 2, 4]
    assert weighted_by_relation(graph, {"cites": 3}, run_options()).weight_scale == 1
    assert weighted_by_relation(graph, {}, run_options()) is graph
    assert weighted_by_relation(graph, None, run_options()) is graph


def test_partitioners_follow_the_factors(tmp_path):
    # A ring of rings: `near` joins neighbours of a ring, `far` the same places of all rings.
    size, rings = 32, 4
    vertices = np.arange(size * rings).reshape(rings, size)
    near = np.stack([vertices, np.roll(vertices, -1, 1)], -1).reshape(-1, 2)
    far = np.concatenate([np.stack([vertices[i], vertices[(i + 1) % rings]], 1) for i in range(rings)])
    graph = typed_graph(tmp_path, {"a": size * rings}, {"far": ("a", "a", far), "near": ("a", "a", near)})
    for call in (fp.multilevel, fp.partition):
        cuts = {}
        for name in ("near", "far"):
            p = call(graph, 4, relation_weights={name: 50.0})
            assert p.parameters["relation_weights"] == {name: 50.0}
            assert p.graph is graph
            cuts[name] = dict(p.evaluate().relations["relation", "edges_cut"].rows())
            assert p.evaluate(relation_weights={name: 50.0}).weighted_cut == sum(
                cut * (50.0 if each == name else 1.0) for each, cut in cuts[name].items()
            )
        assert cuts["near"]["near"] < cuts["far"]["near"]
        assert cuts["far"]["far"] < cuts["near"]["far"]
    p = fp.multilevel(graph, 4, relation_weights={"near": 50.0})
    again = fp.refine(graph, fp.VertexPartition(p, 4), relation_weights={"near": 50.0})
    cut, before = (
        fp.evaluate(graph, each, relation_weights={"near": 50.0}).weighted_cut for each in (again, p)
    )
    assert cut <= before
    assert fp.refine(p.graph, p).parameters["relation_weights"] == {"near": 50.0}
    assert fp.update(graph, p).parameters["relation_weights"] == {"near": 50.0}
    # Without factors nothing is recorded, and the factor 1 changes nothing.
    plain = fp.multilevel(graph, 4)
    assert "relation_weights" not in plain.parameters
    assert fp.multilevel(graph, 4, relation_weights={"near": 1.0}) == plain


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        ({"cite": 2.0}, fp.errors.ParameterError, "no relation 'cite'. Did you mean 'cites'"),
        ({"cites": -1.0}, fp.errors.ParameterError, "cites: -1.0 is no finite number of at least 0"),
        ({"cites": np.nan}, fp.errors.ParameterError, "cites: nan is no finite number"),
        ({"cites": "2"}, TypeError, "cites: expected a number, got str"),
        ([2.0], TypeError, "expected numbers by relation"),
        (dict.fromkeys(("cites", "has_topic", "writes"), 0), fp.errors.ParameterError, "all weights are 0"),
    ],
)
def test_wrong_factors_are_refused(graph, given, error, text):
    with pytest.raises(error, match=text):
        fp.multilevel(graph, 2, relation_weights=given)
    with pytest.raises(error, match=text):
        fp.evaluate(graph, np.zeros(graph.num_vertices, int), relation_weights=given)


def test_refusals_say_what_helps(graph):
    plain = fp.open_graph(records_of(graph), num_vertices=graph.num_vertices)
    with pytest.raises(fp.errors.ParameterError, match=r"no relations\. Open it with weights="):
        fp.multilevel(plain, 2, relation_weights=FACTORS)
    with pytest.raises(fp.errors.ParameterError, match='needs of="vertices"'):
        fp.partition(graph, 2, of="edges", relation_weights=FACTORS)
    with pytest.raises(fp.errors.ParameterError, match="an edge partition has no measures of weights"):
        fp.evaluate(graph, fp.algorithms.dbh(graph, 2), relation_weights=FACTORS)
    with pytest.raises(fp.errors.MemoryBudgetError, match=r"relation_weights: .* Raise memory_limit"):
        weighted_by_relation(graph, FACTORS, run_options(memory_limit=100))


def test_the_shell_takes_factors(graph, tmp_path, capsys):
    file, out = str(graph.path), str(tmp_path / "parts.npy")
    words = ["--relation-weights", "cites=2,writes=0.5"]
    assert main(["partition", file, "-k", "3", "--algorithm", "multilevel", "-o", out, *words]) == 0
    assert "weighted_cut" in capsys.readouterr().out
    expected = fp.multilevel(graph, 3, relation_weights=FACTORS)
    assert (np.load(out) == expected.assignment).all()
    assert main(["evaluate", file, out, *words]) == 0
    assert (
        f"{fp.evaluate(graph, expected, relation_weights=FACTORS).weighted_cut:.4f}"
        in capsys.readouterr().out
    )
    assert main(["partition", file, "-k", "3", "--relation-weights", "cites"]) != 0
    assert "'cites' is not a name and a number. Write them as in cites=2" in capsys.readouterr().err
    assert main(["evaluate", file, out, "--relation-weights", "cites=many"]) != 0
    assert "'many' is not a number" in capsys.readouterr().err
    assert main(["partition", file, "-k", "3", "--algorithm", "ldg", *words]) == 0
    assert "ldg does not read weights" in capsys.readouterr().err
    assert main(["partition", file, "-k", "3", "--algorithm", "dbh", *words]) != 0
    assert "needs a partition of the vertices" in capsys.readouterr().err
