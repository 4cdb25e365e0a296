"""Examples and benchmarks: every name of the package that they use is there. Most are run by hand only."""

import ast
import importlib
from pathlib import Path

import pytest

HOME = Path(__file__).parents[1]
FILES = [*sorted((HOME / "examples").glob("*.py")), *sorted((HOME / "benches").glob("*.py"))]


def used(tree):
    """Yield the names of the package that a module imports or reads, as pairs of module and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fastpart":
            yield from ((node.module, [each.name]) for each in node.names)
        elif isinstance(node, ast.Attribute):
            names = []
            while isinstance(node, ast.Attribute):
                names.insert(0, node.attr)
                node = node.value
            if isinstance(node, ast.Name) and node.id == "fp":
                yield "fastpart", names[:2]


@pytest.mark.torch
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_name_that_it_uses_is_there(file):
    pytest.importorskip("torch")
    for module, names in used(ast.parse(file.read_text())):
        value = importlib.import_module(module)
        for name in names:
            value = (
                getattr(value, name) if hasattr(value, name) else importlib.import_module(f"{module}.{name}")
            )
