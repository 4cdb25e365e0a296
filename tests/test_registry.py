"""The registry of partitioners: what it says is what Python functions, stubs, the command line and `info` have."""

import ast
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import fastpart as fp
from fastpart import _core
from fastpart.core.calls import full_signature
from fastpart.partitions.partitioners import ALGORITHMS, PARTITIONERS, VARIANTS, items_of
from needed import needed

GRAPH = np.array([[0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3], [0, 3], [3, 3]])


@pytest.mark.parametrize("name", PARTITIONERS)
def test_every_parameter_is_in_the_signature_and_in_the_docs(name):
    function, algorithm = getattr(fp.algorithms, name), ALGORITHMS[name]
    known, text = full_signature(function).parameters, function.full_doc
    for field in algorithm.fields:
        assert known[field.name].default == field.default
        assert f"\n{field.name} : " in text
        assert field.doc.strip()
    documented = text.partition("Parameters\n")[2].partition("\nReturns\n")[0]
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
    with pytest.raises(fp.errors.ParameterError, match=f"{next(iter(given))}: it belongs to of="):
        PARTITIONERS[name](GRAPH, 2, **given)


def test_info_estimates_all():
    assert list(fp.info(GRAPH)["memory"]) == ["adjacency", *PARTITIONERS, "refine"]


def test_warnings_point_at_the_call():
    with pytest.warns(fp.errors.CapacityWarning) as caught:
        fp.spring(GRAPH, k=9)
    assert {warning.filename for warning in caught} == {__file__}


RUST, PYTHON = Path(__file__).parents[1] / "rust", Path(fp.__file__).parent

CHOSEN = {
    "__init__.py",  # some are at the top
    "algorithms.py",  # the names, for type checkers
    "measures/compare/provenance.py",  # the papers that they are from
    "partitions/partitioners/choice.py",  # what `partition` chooses from
    "train/comparing.py",  # what trainings are compared over
    "train/methods/sdt/sizing.py",
    "partitions/documents.py",  # the graph of `update` is another one
    "partitions/partitioners/refining.py",
    "store/directory.py",
    "cli/partitioning.py",  # verbs of their own
    "cli/verbs.py",
}
"""Files of Python that name partitioners because they choose among them, or treat a successor by itself."""

SHARED = {"random", "hash", "bytegnn"}
"""Names that are also something else: modules, builtins, a training method."""


def owned() -> dict[str, Path]:
    """Return the file or the folder of each algorithm, by the name that its declaration has."""
    found = {}
    for file in sorted((RUST / "algorithms").rglob("*.rs")):
        text = file.read_text()
        for name in re.findall(r'=> "(\w+)", (?:\[|[A-Z])', text):
            found[name] = file.parent if file.name == "mod.rs" else file
    return found


def test_a_partitioner_is_its_file_and_a_line_of_the_registry():
    """Its name stands nowhere else, but for generated stubs. Whoever adds one touches these, and its tests and docs."""
    homes = owned()
    algorithms = [*_core.algorithms(), *_core.successors()]
    assert set(homes) == {algorithm.name for algorithm in algorithms}
    words = {word for algorithm in algorithms for field in algorithm.fields for word in field.words}
    places = {name: set() for name in homes}
    for file in sorted(RUST.rglob("*.rs")):
        quoted = set(re.findall(r'"(\w+)"', re.sub(r"^\s*//.*$", "", file.read_text(), flags=re.MULTILINE)))
        for name in quoted & (set(homes) - words):
            if not file.is_relative_to(homes[name]):
                places[name].add(str(file.relative_to(RUST)))
    for file in sorted(PYTHON.rglob("*.py")):
        tree = ast.parse(file.read_text())
        constants = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        for name in (set(homes) - SHARED) & {value for value in constants if isinstance(value, str)}:
            places[name].add(str(file.relative_to(PYTHON)))
    assert {name: found - CHOSEN for name, found in places.items() if found - CHOSEN} == {}
    registry = (RUST / "algorithms" / "mod.rs").read_text().partition("registry! {")[2]
    assert len(re.findall(r"::[A-Z]\w+", registry)) == len(homes)


@pytest.mark.parametrize(
    "place",
    [
        "tests/test_golden.py",
        "docs/reference/algorithms.md",
        "docs/reference/api/partitioners.rst",
        "docs/how-it-works/",
    ],
)
def test_places_that_the_guide_lists_have_every_partitioner(place):
    path = RUST.parent / place
    text = "".join(page.read_text() for page in ([path] if path.is_file() else path.glob("*.md"))).lower()
    assert [name for name in PARTITIONERS if not re.search(rf"\b{name}\b", text)] == []
    assert place in (RUST.parent / "docs" / "guides" / "adding-an-algorithm.md").read_text()
