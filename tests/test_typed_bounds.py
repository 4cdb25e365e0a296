"""Bounds on the vertices of each type: by name, kept, recorded, inherited and refused."""

import json

import numpy as np
import pytest

import fastpart as fp
from fastpart.cli import main
from random_typed import random_typed_graph, records_of, typed_graph

NAMES = ["author", "field", "paper"]


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return random_typed_graph(tmp_path_factory.mktemp("typed"), seed=3, scale=20)


def masks(graph):
    return [np.isin(np.arange(graph.num_vertices), each.range) for each in graph.types]


def loads(graph, p):
    return np.array([np.bincount(p.assignment[each.range], minlength=p.k) for each in graph.types])


def test_all_types_are_bounded(graph):
    free, p = fp.multilevel(graph, 8), fp.multilevel(graph, 8, balance_on="types")
    assert p.bounded_types == tuple(NAMES)
    assert p.parameters["balance_on"] == NAMES
    assert (p.weight_loads == loads(graph, p)).all()
    assert (p.weight_loads <= p.weight_cap[:, None]).all()
    assert p.weight_cap.tolist() == [int(np.ceil(1.05 * each.n / 8)) for each in graph.types]
    assert p.loads.max() <= p.cap
    assert fp.evaluate(graph, p).type_balance < fp.evaluate(graph, free).type_balance
    # The same as with arrays.
    arrays = fp.multilevel(graph, 8, balance_on=masks(graph))
    assert arrays == p
    assert arrays.bounded_types is None


def test_measures_and_repeats_carry_the_names(graph):
    p = fp.multilevel(graph, 4, balance_on=["paper", "author"])
    e = p.evaluate()
    assert e.weight_balance_paper == e.types["vertex_balance"][2]
    assert {"weight_load_author", "weight_cap_author"} < set(e.parts.columns)
    one = fp.multilevel(graph, 4, balance_on="paper")
    assert (one.bounded_types, one.parameters["balance_on"]) == (("paper",), "paper")
    assert one.weight_loads.shape == (4,)
    assert "weight_balance_paper" in one.evaluate().summary.columns
    mixed = fp.multilevel(graph, 4, balance_on=["field", masks(graph)[0]])
    assert mixed.bounded_types == ("field", None)
    assert mixed.parameters["balance_on"][0] == "field"
    assert "array of 2100 weights" in mixed.parameters["balance_on"][1]
    assert {"weight_balance_field", "weight_balance_1"} < set(mixed.evaluate().summary.columns)


def test_refine_and_update_inherit_the_types(graph):
    p = fp.multilevel(graph, 4, balance_on="types")
    for q in (fp.refine(p.graph, p), fp.update(graph, p)):
        assert q.bounded_types == p.bounded_types
        assert (q.weight_loads <= q.weight_cap[:, None]).all()
    one = fp.refine(graph, fp.multilevel(graph, 4, balance_on="field"))
    assert one.bounded_types == ("field",)
    assert isinstance(one.weight_cap, int)
    assert fp.refine(graph, fp.multilevel(graph, 4), balance_on="types").bounded_types == tuple(NAMES)
    mixed = fp.multilevel(graph, 4, balance_on=["field", masks(graph)[0]])
    with pytest.raises(fp.errors.ParameterError, match=r"does not keep\. Pass them again"):
        fp.refine(mixed.graph, mixed)


@pytest.mark.parametrize("name", ["ldg", "fennel", "spring", "random"])
def test_others_bound_one_type(graph, name):
    p = getattr(fp.algorithms, name)(graph, 4, balance_on="paper")
    assert p.bounded_types == ("paper",)
    assert (p.weight_loads == loads(graph, p)[2]).all()
    assert p.weight_loads.max() <= p.weight_cap
    assert getattr(fp.algorithms, name)(graph, 4, balance_on=["paper"]) == p
    with pytest.raises(
        fp.errors.ParameterError, match=f"{name} takes one bound, not 3. Name one type, or use multilevel"
    ):
        getattr(fp.algorithms, name)(graph, 4, balance_on="types")


def test_a_directory_keeps_the_names(graph, tmp_path):
    for given in ("types", "paper", ["field", masks(graph)[0]]):
        p = fp.multilevel(graph, 4, balance_on=given)
        p.graph = None
        p.save(tmp_path / "parts/")
        opened = fp.open_partition(tmp_path / "parts")
        assert opened.bounded_types == p.bounded_types
        assert np.array_equal(opened.weight_cap, p.weight_cap)
        assert np.array_equal(opened.weight_loads, p.weight_loads)
        assert fp.evaluate(graph, opened) == fp.evaluate(graph, p)
    caps = json.loads((tmp_path / "parts/manifest.json").read_text())["caps"]
    assert [(each["of"], each.get("name"), each.get("index")) for each in caps] == [
        ("vertices", None, None),
        ("type", "field", 0),
        ("weights", None, 1),
    ]


def test_refusals_name_the_remedy(graph, tmp_path):
    with pytest.raises(
        fp.errors.ParameterError, match=r"no type 'papers'\. The types are .*Did you mean 'paper'"
    ):
        fp.multilevel(graph, 2, balance_on=["papers"])
    plain = fp.open_graph(records_of(graph), num_vertices=graph.num_vertices)
    with pytest.raises(fp.errors.ParameterError, match=r"the graph has no types\. Pass an array"):
        fp.multilevel(plain, 2, balance_on="types")
    types = {f"t{index}": 3 for index in range(8)} | {"empty": 0}
    many = typed_graph(tmp_path / "many", types, {"r": ("t0", "t1", [[0, 0], [1, 2]])})
    with pytest.raises(
        fp.errors.ParameterError,
        match=r"8 types with vertices, .* 7 bounds\. Name the types .*\['t0', 't1'\]",
    ):
        fp.multilevel(many, 2, balance_on="types")
    assert len(fp.multilevel(many, 3, balance_on=list(types)[:7]).weight_cap) == 7
    with pytest.raises(fp.errors.ParameterError, match="9 bounds with that on vertices"):
        fp.multilevel(many, 2, balance_on=list(types)[:8])


def test_a_raised_cap_names_the_type(tmp_path):
    graph = typed_graph(tmp_path, {"a": 4, "b": 4}, {"r": ("a", "b", [[0, 0], [1, 1], [2, 2], [3, 3]])})
    for k in (2, 3, 4):
        p = fp.multilevel(graph, k, balance_on="types", balance_on_ratio=1.0)
        assert (p.weight_loads <= p.weight_cap[:, None]).all()


def test_the_shell_names_types(graph, tmp_path, capsys):
    file, out = str(graph.path), str(tmp_path / "parts.npy")
    call = ["partition", file, "-k", "4", "--algorithm", "multilevel", "-o", out, "--balance-on"]
    np.save(tmp_path / "mask.npy", masks(graph)[0])
    for word, given in (
        ("types", "types"),
        ("type:paper", "paper"),
        ("type:paper,type:field", ["paper", "field"]),
        (f"type:field,{tmp_path / 'mask.npy'}", ["field", masks(graph)[0]]),
    ):
        assert main([*call, word]) == 0
        assert (np.load(out) == fp.multilevel(graph, 4, balance_on=given).assignment).all()
    assert "weight_balance_field" in capsys.readouterr().out
    assert main([*call, "type:papers"]) != 0
    assert "no type 'papers'" in capsys.readouterr().err
    assert main([*call, "types,type:paper"]) != 0
    assert "types stands alone" in capsys.readouterr().err
