"""Models of users: where they are imported from, and the name under which another process finds them."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import ParameterError

ModelSource = str | Callable[..., Any]
"""A name, an import path, or what makes a network; see :func:`fastpart.train.models.build`."""


def module_of(source: str) -> ModuleType:
    """Return a module by its name or, if that ends with ``.py``, its file."""
    if not source.endswith(".py"):
        return importlib.import_module(source)
    file = Path(source)
    return _executed(file.resolve(), file.stat().st_mtime_ns)


@cache
def _executed(file: Path, modified: int) -> ModuleType:
    """Execute a file, once for each time that it was modified."""
    name = f"fastpart_model_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def import_path(model: ModelSource) -> str:
    """Return the name under which another process finds the model."""
    if isinstance(model, str):
        source, _, attribute = model.rpartition(":")
        return f"{Path(source).resolve()}:{attribute}" if source.endswith(".py") else model
    module, name = getattr(model, "__module__", None), getattr(model, "__qualname__", "")
    if module == "__main__":
        module = getattr(sys.modules["__main__"], "__file__", None)
        module = module and str(Path(module).resolve())
    if not module or not name.isidentifier():
        raise ParameterError(
            "model: other processes cannot import it; put the class at the top level of a module or file"
        )
    return f"{module}:{name}"
