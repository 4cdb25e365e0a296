"""The registry of partitioners: what it says is what Python functions, stubs, the command line and `info` have."""

import ast
import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp
from fastpart import _core
from fastpart.partitions.partitioners import ALGORITHMS, PARTITIONERS, VARIANTS, documents, items_of
from needed import needed

GRAPH = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [3, 3]])


def test_stubs_are_those_of_the_registry():
    """`make stubs` writes them anew."""
    found = Path(fp.partitions.partitioners.__file__).with_name("builtin.pyi").read_text()
    assert ast.dump(ast.parse(found)) == ast.dump(ast.parse(documents.stubs(_core.algorithms())))


@pytest.mark.parametrize("name", PARTITIONERS)
def test_every_parameter_is_in_the_signature_and_in_the_docs(name):
    function, algorithm = getattr(fp, name), ALGORITHMS[name]
    known = inspect.signature(function).parameters
    for field in algorithm.fields:
        assert known[field.name].default == field.default
        assert f"\n{field.name} : " in function.__doc__
        assert field.doc.strip()
    documented = function.__doc__.partition("Parameters\n")[2].partition("\nReturns\n")[0]
    names = [
        name
        for line in documented.splitlines()
        if line and not line.startswith((" ", "-"))
        for name in line.partition(" : ")[0].split(", ")
    ]
    assert names == list(known)


@pytest.mark.parametrize("name", PARTITIONERS)
def test_defaults_stand_in_the_parameters_of_the_result(name):
    for variant in ({}, *VARIANTS[name]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # chunks of so small a graph are thin
            part = PARTITIONERS[name](GRAPH, 2, **needed(name, 6), **variant)
        assert part.of == items_of(name, variant)
        assert part.parameters["k"] == 2
        for field in ALGORITHMS[name].fields:
            belongs = field.only in (None, part.of) and field.kind not in ("degrees", "folder")
            assert (field.name in part.parameters) == belongs
            if belongs and field.default is not None and field.name not in variant:
                assert part.parameters[field.name] == field.default


def test_a_call_with_the_parameters_of_a_result_gives_the_same():
    for name in ("sigma", "multilevel", "two_phase"):
        part = PARTITIONERS[name](GRAPH, 2)
        again = PARTITIONERS[name](GRAPH, **part.parameters)
        assert (again.assignment == part.assignment).all()


@pytest.mark.parametrize(
    ("name", "given"), [("sigma", {"bands": 3}), ("random", {"balance_on": [1] * 6, "of": "edges"})]
)
def test_parameters_of_the_other_mode_are_refused(name, given):
    with pytest.raises(fp.ParameterError, match=f"{next(iter(given))}: it belongs to of="):
        PARTITIONERS[name](GRAPH, 2, **given)


def test_info_estimates_all():
    assert list(fp.info(GRAPH)["memory"]) == ["adjacency", *PARTITIONERS, "refine"]


def test_warnings_point_at_the_call():
    with pytest.warns(fp.CapacityWarning) as caught:
        fp.spring(GRAPH, k=9)
    assert {warning.filename for warning in caught} == {__file__}
