"""Models that were defined in a notebook, as files that other processes can import."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any

from ...errors import ParameterError


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
