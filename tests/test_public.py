"""The public surface is what the reference documents: names of modules, of classes, and of objects."""

import importlib
import inspect
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

import fastpart as fp
from trainable import planted

API = Path(__file__).parents[1] / "docs" / "reference" / "api"

DIRECTIVE = re.compile(r"^\.\. (currentmodule|auto\w+):: (\S+)\n((?: +:.*\n)*)", re.MULTILINE)

SECTION = re.compile(r"(?:Attributes|Parameters)\n-+\n(.*?)(?:\n\n|\Z)", re.DOTALL)

EXTENSIONS = re.compile(r"fastpart\.(core\.option_groups|train\.(jobs|options|models|registry|graphs))\.")
"""What methods and models of one's own are made with. The reference has what such code uses of it."""

LIBRARIES = {"loading": "torch", "pyg": "torch_geometric", "train": "torch"}
"""What modules need."""

MODULES = sorted(
    [
        "fastpart",
        *(f"fastpart.{name}" for name in fp._MODULES),
        "fastpart.compat.networkx",
        "fastpart.compat.pymetis",
        "fastpart.loading.rows",
        "fastpart.train.loggers",
    ]
)


def entries():
    """Yield kind, full name and options of each entry of the reference."""
    for page in sorted(API.glob("*.rst")):
        module = ""
        for kind, name, options in DIRECTIVE.findall(page.read_text()):
            full = name if name.startswith("fastpart") else f"{module}.{name}"
            if kind == "currentmodule":
                module = name
            elif not EXTENSIONS.match(full):
                yield kind, full, dict(re.findall(r":([\w-]+): ?(.*)", options))
                if kind == "automodule" and ":members:" in options:
                    names = importlib.import_module(full).__all__
                    yield from (("autoclass", f"{full}.{each}", {"members": ""}) for each in names)


ENTRIES = {name: options for _, name, options in entries()}

BASE = "fastpart.partitions.partition.Partition"
"""Its methods are documented at both of its classes."""

CLASSES = [name for kind, name, _ in entries() if kind in ("autoclass", "autoexception") and name != BASE]


def found(name):
    """Return what has a dotted name."""
    module, _, last = name.rpartition(".")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return getattr(found(module), last)


def library(name):
    """Return what a name needs beside the package itself."""
    return LIBRARIES.get("".join(name.split(".")[1:2]))


def is_there(name):
    return library(name) is None or find_spec(library(name)) is not None


def marked(names):
    """Mark the names of what needs torch."""
    return [pytest.param(name, marks=pytest.mark.torch) if library(name) else name for name in names]


@pytest.fixture(autouse=True)
def libraries():
    """Import libraries that warn when they are imported, where they are installed."""
    for name in {*LIBRARIES.values()}:
        if find_spec(name) is not None:
            pytest.importorskip(name)


def public(names):
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("name", marked(MODULES))
def test_a_module_shows_what_is_documented_and_nothing_else(name):
    if not is_there(name):
        pytest.importorskip(library(name))
    module = importlib.import_module(name)
    shown = public(dir(module))
    here = {full.rpartition(".")[2] for full in [*ENTRIES, *MODULES] if full.rpartition(".")[0] == name}
    assert here - {"Options"} <= shown  # fp.Options is for annotations, and dir(fp) is short
    elsewhere = [found(entry) for entry in ENTRIES if is_there(entry)]
    undocumented = {
        each for each in shown - here if not any(getattr(module, each) is value for value in elsewhere)
    }
    assert undocumented == set()


def test_modules_that_are_imported_later_show_no_other_names():
    code = (
        "import fastpart as fp, fastpart.compat.pymetis, fastpart.compat.networkx, fastpart.train.loggers\n"
        "before = {name: dir(getattr(fp, name)) for name in ('algorithms', 'compat', 'report', 'store', 'train')}\n"
        "import fastpart.report.pages, fastpart.store.saving, fastpart.train.registry, fastpart.cli\n"
        "assert before == {name: dir(getattr(fp, name)) for name in before}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@cache
def classes():
    """Return the classes of the reference, and the options of their entries."""
    values = {name: found(name) for name in ENTRIES if is_there(name)}
    return {value: ENTRIES[name] for name, value in values.items() if inspect.isclass(value)}


def documented(cls):
    """Return the names of a class and its objects that its page has, or that of a class that it extends."""
    options, names = classes().get(cls, {}), set()
    of_bases = cls.__mro__ if "inherited-members" in options else [cls]
    for each in of_bases:
        for section in SECTION.findall(inspect.cleandoc(vars(each).get("__doc__") or "")):
            lines = [line.partition(" : ")[0] for line in section.splitlines() if not line.startswith(" ")]
            names |= set(re.findall(r"\w+", " ".join(lines)))
        if "members" in options:
            chosen = re.findall(r"\w+", options["members"]) or vars(each)
            names |= {name for name in chosen if inspect.getdoc(getattr(each, name))}
    return names.union(*(documented(base) for base in cls.__bases__ if base in classes()))


def foreign(cls):
    """Return the names that a class has from other packages, such as those of dictionaries and of errors."""
    return {name for base in cls.__mro__ if not base.__module__.startswith("fastpart") for name in dir(base)}


def undocumented(value, cls):
    return public(dir(value)) - documented(cls) - foreign(cls)


@pytest.mark.parametrize("name", marked(CLASSES))
def test_a_class_shows_what_is_documented(name):
    if not is_there(name):
        pytest.importorskip(library(name))
    cls = found(name)
    assert undocumented(cls, cls) == set()


def test_the_package_has_few_names():
    assert len(dir(fp)) <= 40


def test_no_page_leaves_out_a_public_member():
    assert [page.name for page in API.glob("*.rst") if "exclude-members" in page.read_text()] == []


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = planted(tmp_path_factory.mktemp("public"), n=120, m=600)
    return fp.open_partition(folder, folder.parent / "g.bin")


def test_objects_show_what_is_documented(stored):
    graph = stored.graph
    evaluation = stored.evaluate()
    edges = fp.algorithms.dbh(graph, k=2)
    values = [graph, stored, stored.parts[0], fp.VertexPartition([0, 1], 2), edges, fp.cluster(graph)]
    values += [
        fp.order(graph, stored, out=stored.folder.parent / "ordered.bin"),
        fp.split_edges(graph),
        fp.datasets.cora(),
        fp.store.verify(stored.folder),
    ]
    values += [fp.compare(graph, 2, ["dbh"]), fp.predict_traffic(stored, [2])]
    for value in values:
        assert undocumented(value, type(value)) == set(), type(value)
    assert undocumented(evaluation, fp.typing.Evaluation) == {*evaluation.summary.columns} - documented(
        fp.typing.Evaluation
    )


@pytest.mark.torch
def test_batches_and_models_show_what_is_documented(stored):
    loader = stored.loader(fanouts=[2])
    batch = next(iter(loader))
    values = [loader, batch, batch.blocks()[0], fp.train.full(stored, epochs=1), stored.plan(fanouts=[2])]
    for value in values:
        assert undocumented(value, type(value)) == set(), type(value)
