"""What users plug in: models, losses, optimizers and metrics, as names, files or objects; and the libraries they need.

Workers get objects by cloudpickle, which also takes lambdas and what a notebook defines. An object goes from the
process of the user to its workers, and is never stored.
"""

from __future__ import annotations

import ast
import base64
import builtins
import contextlib
import errno
import importlib
import importlib.util
import io
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

from ..core.parameters import meant, shown
from ..errors import FastpartError, MemoryBudgetError, ParameterError


def import_torch() -> None:
    """Import torch, or say what to install."""
    _import("torch", "train")


def import_dgl() -> None:
    """Import DGL and the torch that it needs, or say what to install."""
    # Without it, dgl prompts for its backend and writes a default to the home directory.
    os.environ.setdefault("DGLBACKEND", "pytorch")
    _import("torch", "dgl")
    _import("dgl", "dgl")


def import_ray() -> None:
    """Import Ray Train, or say what to install."""
    _import("ray.train.torch", "ray-train")


def _import(name: str, extra: str) -> None:
    try:
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"training needs {error.name}, which is not installed: pip install 'fastpart[{extra}]'",
            name=error.name,
        ) from None
    except Exception as error:
        if _is_short_of_memory(error):
            raise MemoryBudgetError(
                f"training needs {name}, for whose libraries there is too little memory ({error}). Raise the limit of "
                "this process (ulimit -v, a batch system or a container), or end other programs"
            ) from error
        raise FastpartError(
            f"training needs {name}, but its import failed ({type(error).__name__}: {error}). Reinstall it: "
            f"pip install --force-reinstall 'fastpart[{extra}]'"
        ) from error


def _is_short_of_memory(error: Exception) -> bool:
    """Return whether an import failed because memory is too small for a library. The loader says so in words only."""
    words = ("failed to map segment", "cannot allocate memory", "out of memory")
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return any(word in str(error).lower() for word in words) and "static TLS" not in str(error)


MODELS = {
    "graphsage": "graphsage:GraphSAGE",
    "graphsage-gcn": "graphsage:GraphSAGEWithLoops",
    "gcn": "gcn:GCN",
    "gin": "gin:GIN",
    "gine": "gin:GINE",
    "gat": "gat:GAT",
    "gatv2": "gat:GATv2",
    "transformer": "gat:Transformer",
    "sgc": "gcn:SGC",
    "clustergcn": "graphsage:ClusterGCN",
    "graphsaint": "graphsage:GraphSAINT",
    "ngnn": "graphsage:NGNN",
}
"""The built-in models, and where in ``fastpart.train.models`` they are: names are refused before torch is imported."""

TYPED_MODELS = {
    "rgcn": "relational:RGCN",
    "rgat": "relational:RGAT",
    "hgt": "relational:HGT",
    "heterosage": "relational:HeteroSAGE",
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


def in_notebook(model: object) -> bool:
    """Return whether a class or function was defined in a cell of a notebook."""
    main = sys.modules["__main__"]
    return (
        getattr(model, "__module__", None) == "__main__"
        and not hasattr(main, "__file__")
        and isinstance(getattr(main, "In", None), list)
    )


def text_of(model: Callable[..., Any]) -> str:
    """Return a Python file with the model, and what it uses of the notebook: imports, definitions and constants.

    Raises
    ------
    ParameterError
        The model uses a value of the notebook that cannot be written down.
    """
    namespace = vars(sys.modules["__main__"])
    written: dict[str, str] = {}
    _write(model.__name__, namespace, written)
    return "\n\n".join([*written.values(), ""])


def _write(name: str, namespace: Mapping[str, Any], written: dict[str, str]) -> None:
    """Add the lines that define a name, behind those that define what it needs."""
    value = namespace[name]
    if name in written:
        return
    written[name] = ""  # names may need each other
    if isinstance(value, ModuleType):
        line = f"import {value.__name__} as {name}"
    elif getattr(value, "__module__", None) == "__main__" and (found := _definition(name, namespace["In"])):
        line, node = found
        for used in _names(node):
            if used in namespace and not hasattr(builtins, used):
                _write(used, namespace, written)
    elif hasattr(value, "__module__") and hasattr(value, "__qualname__"):
        line = f"from {value.__module__} import {value.__qualname__} as {name}"
    else:
        line = f"{name} = {_literal(name, value)}"
    del written[name]
    written[name] = line


def _definition(name: str, cells: list[str]) -> tuple[str, ast.AST] | None:
    """Return the text of a class or function, and its tree, from the last cell that defines it."""
    for cell in reversed(cells):
        text = "".join(
            line for line in cell.splitlines(True) if not line.lstrip().startswith(("%", "!", "?"))
        )
        with suppress(SyntaxError):
            for node in ast.parse(text).body:
                if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
                    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                    return "\n".join(text.splitlines()[first - 1 : node.end_lineno]), node
    return None


def _names(node: ast.AST) -> Iterator[str]:
    return (each.id for each in ast.walk(node) if isinstance(each, ast.Name))


def _literal(name: str, value: object) -> str:
    text = repr(value)
    with suppress(ValueError, SyntaxError, MemoryError):
        if ast.literal_eval(text) == value:
            return text
    raise ParameterError(
        f"model: it uses {name!r} of the notebook, a {type(value).__name__}, which other processes do not have. Define "
        "it inside the model, or move the model to a file"
    )


PLUGGED = ("loss", "optimizer", "scheduler", "metrics")
"""The parameters that take objects alone. A model may be named instead."""


def plugged(name: str, value: Any) -> Callable[..., Any] | None:
    """Check an object of the user."""
    if value is None or (callable(value) and not _is_optimizer(value)):
        return value
    example = {
        "loss": "a callable(outputs, labels), such as torch.nn.functional.cross_entropy",
        "optimizer": "a callable(weights), such as lambda weights: torch.optim.AdamW(weights, lr=0.001)",
        "scheduler": "a callable(optimizer), such as lambda optimizer: "
        "torch.optim.lr_scheduler.StepLR(optimizer, 10)",
    }
    raise TypeError(f"{name}: expected {example[name]}, got {type(value).__name__}")


def metrics_of(value: Any) -> dict[str, Any] | None:
    """Check the metrics of the user, by name."""
    if value is None:
        return None
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"metrics: expected names and callables(outputs, labels), got {type(value).__name__}")
    for name, metric in value.items():
        if not name.isidentifier() or name in ("accuracy", "f1", "mrr", "auc", "rmse", "mae"):
            raise ParameterError(f"metrics: {name!r} is no free name for a column. Choose another one")
        if not callable(metric):
            raise TypeError(
                f"metrics: {name} is a {type(metric).__name__}. Pass a callable(outputs, labels), or a metric of "
                "torchmetrics"
            )
    return dict(value)


def _is_optimizer(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.optim.Optimizer)


def is_network(model: object) -> bool:
    """Return whether a model is a network already. Each worker trains a copy of it."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def name_of(value: object) -> str:
    """Return the name of an object for files and errors."""
    if isinstance(value, Mapping):
        return ", ".join(value)
    return value if isinstance(value, str) else str(getattr(value, "__qualname__", type(value).__name__))


def pickled(objects: Mapping[str, Any]) -> str | None:
    """Return text that :func:`unpickled` reads in another process. None without objects."""
    if not objects:
        return None
    try:
        cloudpickle = importlib.import_module("cloudpickle")
    except ModuleNotFoundError:
        names = ", ".join(f"{name}=" for name in objects)
        raise ModuleNotFoundError(
            f"{names}: workers get it by cloudpickle, which is not installed: pip install 'fastpart[train]'",
            name="cloudpickle",
        ) from None
    content = {}
    for name, value in objects.items():
        try:
            content[name] = cloudpickle.dumps(value)
        except Exception as error:  # what it holds may raise anything
            raise ParameterError(
                f"{name}: other processes cannot get {name_of(value)} ({type(error).__name__}: {error}). Do not use "
                "open files, locks or connections in it"
            ) from error
    return base64.b64encode(pickle.dumps(content)).decode()


def unpickled(text: str | None) -> dict[str, Any]:
    """Return the objects that the process of the user has sent."""
    content = {} if text is None else pickle.loads(base64.b64decode(text))
    return {name: pickle.loads(value) for name, value in content.items()}
