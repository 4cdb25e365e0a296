"""The examples of the docstrings, run against the package that is installed."""

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import fastpart

HOME = Path(fastpart.__file__).parent
MODULES = sorted(
    ".".join(["fastpart", *file.relative_to(HOME).with_suffix("").parts]).removesuffix(".__init__")
    for file in HOME.rglob("*.py")
    if ">>>" in file.read_text()
)
MODULES += ["fastpart.partitions.partitioners.builtin"]  # which writes its docs from the registry
EXTRAS = ("dgl", "ray", "torch", "torch_geometric")
NEEDS = {
    "fastpart.compat.networkx": "networkx",
    "fastpart.export.dgl": "dgl",
    "fastpart.export.glt": "torch",
    "fastpart.export.pyg": "torch_geometric",
    "fastpart.pyg": "torch_geometric",
    "fastpart.train.comparing": "torch",
}
"""What examples import, though their module does not."""


class Finder(doctest.DocTestFinder):
    """Finds decorated functions, too."""

    def _from_module(self, module, object):
        return super()._from_module(module, inspect.unwrap(object))


def marked(name):
    """Return a module with the mark of its environment."""
    pinned = name.startswith(("fastpart.train.methods.distdgl", "fastpart.export."))
    marks = [pytest.mark.torch] * name.startswith(
        ("fastpart.train", "fastpart.export", "fastpart.loading", "fastpart.pyg")
    )
    marks += [pytest.mark.ray] * name.startswith("fastpart.machines")
    return pytest.param(name, marks=marks + [pytest.mark.dgl] * pinned)


@pytest.mark.parametrize("name", [marked(name) for name in MODULES])
def test_examples(name, tmp_path, monkeypatch):
    """Every example of a module that has some prints what it says; files it writes go to a fresh directory."""
    monkeypatch.chdir(tmp_path)
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in EXTRAS:
            raise
        pytest.skip(f"needs {error.name}")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    tests = Finder().find(module)
    for test in tests:
        runner.run(test)
    assert runner.tries > 0
    assert runner.failures == 0
    documented = {
        name
        for name, value in vars(module).items()
        if inspect.isroutine(value) and value.__module__ == module.__name__ and ">>>" in (value.__doc__ or "")
    }
    assert documented <= {test.name.rpartition(".")[2] for test in tests if test.examples}
