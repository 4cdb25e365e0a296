"""Models of users: their import, and the name under which other processes import them."""

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
from ..parameters import meant

NAMES = (
    "graphsage",
    "graphsage-gcn",
    "gcn",
    "gin",
    "gat",
    "gatv2",
    "sgc",
    "clustergcn",
    "graphsaint",
    "ngnn",
)
"""The built-in models. They are listed here to refuse an unknown name before torch is imported."""

ModelSource = str | Callable[..., Any]
"""A name, an import path, or a callable that returns a network. See :func:`fastpart.train.models.build`."""


def checked(model: object) -> ModelSource:
    """Return a model. Refuse a name that is neither a built-in model nor an import path."""
    if not (isinstance(model, str) or callable(model)):
        raise TypeError(f"model: expected a name or a class, got {type(model).__name__}")
    if isinstance(model, str) and ":" not in model and model not in NAMES:
        raise ParameterError(
            f"model: unknown value {model!r}. Valid values are {', '.join(map(repr, NAMES))}, and your own class as "
            f"module:Class or file.py:Class{meant(model, NAMES)}"
        )
    return model


def module_of(source: str) -> ModuleType:
    """Import a module by its name, or by its file if that ends with ``.py``."""
    if not source.endswith(".py"):
        return importlib.import_module(source)
    file = Path(source)
    return _executed(file.resolve(), file.stat().st_mtime_ns)


@cache
def _executed(file: Path, modified: int) -> ModuleType:
    """Execute a file once, and again after it was modified."""
    name = f"fastpart_model_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def import_path(model: ModelSource) -> str:
    """Return the name under which other processes can import the model."""
    if isinstance(model, str):
        source, _, attribute = model.rpartition(":")
        return f"{Path(source).resolve()}:{attribute}" if source.endswith(".py") else model
    module, name = getattr(model, "__module__", None), getattr(model, "__qualname__", "")
    if module == "__main__":
        module = getattr(sys.modules["__main__"], "__file__", None)
        module = module and str(Path(module).resolve())
    if not module or not name.isidentifier():
        raise ParameterError(
            "model: other processes cannot import the class. Move it to the top level of a module or file"
        )
    return f"{module}:{name}"
