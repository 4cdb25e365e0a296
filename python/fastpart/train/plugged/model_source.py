"""Models of users: their import, and the name under which other processes import them."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from ...core.parameters import meant, shown
from ...errors import ParameterError

MODELS = {
    "graphsage": "graphsage:GraphSAGE",
    "graphsage-gcn": "graphsage:GraphSAGEWithLoops",
    "gcn": "gcn:GCN",
    "gin": "gin:GIN",
    "gine": "gin:GINE",
    "gat": "gat:GAT",
    "gatv2": "gat:GATv2",
    "transformer": "transformer:Transformer",
    "sgc": "sgc:SGC",
    "clustergcn": "clustergcn:ClusterGCN",
    "graphsaint": "graphsaint:GraphSAINT",
    "ngnn": "ngnn:NGNN",
}
"""The built-in models, and where in ``fastpart.train.models`` they are: names are refused before torch is imported."""

TYPED_MODELS = {
    "rgcn": "typed.rgcn:RGCN",
    "rgat": "typed.rgat:RGAT",
    "hgt": "typed.hgt:HGT",
    "heterosage": "typed.heterosage:HeteroSAGE",
}
"""The built-in models of typed graphs."""

ModelSource = str | Callable[..., Any]
"""A name, an import path, or a callable that returns a network. See :func:`fastpart.train.models.build`."""

_GUARD = 'Put the call below `if __name__ == "__main__":`, or move the model to a file of its own'

_importing: list[str] = []
"""Sources of models that are being imported now."""


def checked(model: object, name: str = "model") -> ModelSource:
    """Return a model. Refuse a name that is neither a built-in model nor an import path.

    ``name`` is the parameter, for the text of an error.
    """
    if not (isinstance(model, str) or callable(model)):
        raise TypeError(f"{name}: expected a name, a class or a network, got {type(model).__name__}")
    names = (*MODELS, *TYPED_MODELS)
    if isinstance(model, str) and ":" not in model and model not in names:
        raise ParameterError(
            f"{name}: unknown value {model!r}. Valid values are {', '.join(map(repr, names))}, and your own class "
            f"as module:Class or file.py:Class{meant(model, names)}"
        )
    return model


def refuse_nested() -> None:
    """Raise an error if the file of a model trains while it is imported, as every worker imports it."""
    if _importing:
        raise ParameterError(f"model: the import of {_importing[-1]} calls fastpart.train. {_GUARD}")


def refuse_unguarded(model: ModelSource) -> None:
    """Raise an error if workers that import the model would run the script of the user again, which trains."""
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    if isinstance(model, str) or getattr(model, "__module__", None) != "__main__" or file is None:
        return
    running = [frame.f_code.co_filename for frame in _running_modules() if frame.f_globals is vars(main)]
    if os.path.abspath(file) in map(os.path.abspath, running) and not _has_guard(Path(file)):
        raise ParameterError(
            f"model: workers import {getattr(model, '__qualname__', model)} from {shown(file)}, and so would run the "
            f"whole script again, which trains. {_GUARD}"
        )


def _running_modules() -> Iterator[FrameType]:
    """Yield the frames of modules that are being executed."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "<module>":
            yield frame
        frame = frame.f_back


def _has_guard(file: Path) -> bool:
    """Return whether a script may have a guard: it compares ``__name__`` with something, or cannot be read."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return True
    compared = (part for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in ast.walk(node))
    return any(isinstance(part, ast.Name) and part.id == "__name__" for part in compared)


def module_of(source: str) -> ModuleType:
    """Import a module by its name, or by its file if that ends with ``.py``."""
    with _as_imported(source):
        if not source.endswith(".py"):
            return importlib.import_module(source)
        file = Path(source)
        return _executed(file.resolve(), file.stat().st_mtime_ns)


@contextmanager
def _as_imported(source: str) -> Iterator[None]:
    """Let modules of the current folder be found, first of all by the model, and last by what comes later.

    Workers start without the current folder, so that no ``random.py`` there takes the place of the standard library's.
    """
    here = os.getcwd()
    sys.path.insert(0, here)
    _importing.append(source)
    try:
        yield
    finally:
        _importing.pop()
        sys.path.remove(here)
        if here not in sys.path:
            sys.path.append(here)


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
        simple = name.rpartition(".")[2] or f"a {type(model).__name__}"
        what = "a lambda" if simple == "<lambda>" else simple
        raise ParameterError(
            f"model: other processes cannot import {what}. Define it at the top level of a module or file"
        )
    return f"{module}:{name}"
