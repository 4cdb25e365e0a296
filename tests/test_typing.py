"""A strict type checker passes on the examples of the docs, and knows what is refused."""

import doctest
import importlib
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import fastpart

HOME = Path(__file__).parents[1]
HEAVY = (
    "fastpart.train",
    "fastpart.export",
    "fastpart.loading",
    "fastpart.machines",
    "fastpart.pyg",
    "fastpart.cli",
    "fastpart.__main__",
)
"""What needs torch, DGL or Ray, or is no library."""


def examples(folder):
    """Write the examples of every docstring as a module of its own."""
    names = ["fastpart", *(module.name for module in pkgutil.walk_packages(fastpart.__path__, "fastpart."))]
    finder = doctest.DocTestFinder()
    for name in names:
        if name.startswith(HEAVY) or name.endswith("_core"):
            continue
        for found in finder.find(importlib.import_module(name)):
            if found.examples:
                code = "# mypy: allow-untyped-defs, allow-untyped-calls\n"
                code += "".join(example.source for example in found.examples)
                (folder / f"example_{found.name.replace('.', '_')}.py").write_text(code)


@pytest.mark.timeout(600)  # without its cache, it reads all of numpy and Polars
def test_a_strict_type_checker_passes_on_the_examples(tmp_path):
    pytest.importorskip("mypy")
    examples(tmp_path)
    files = [str(HOME / "tests" / "typed.py"), *map(str, sorted(tmp_path.iterdir()))]
    assert len(files) > 20
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *files],
        cwd=HOME,  # whose strict configuration it takes, and the cache of `make lint`, which other options would void
        env={**os.environ, "MYPYPATH": str(HOME / "python")},
        capture_output=True,
        text=True,
        timeout=590,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
