"""Signatures and docstrings of the public functions, read from the source files where their import is slow.

Polars takes tenths of a second to import and torch takes seconds. Neither ``--help`` nor a typo waits for them.
Functions that need neither are imported.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path
from typing import Any, Literal, get_origin

from docstring_parser import DocstringParam, DocstringStyle
from docstring_parser import parse as parse_docstring

from .. import _core
from ..partitions import documents

SOURCES = {
    "open_graph": "graphs.opening",
    "partition": "partitions.partitioners.choosing",
    "info": "measures.info",
    "convert": "graphs.convert",
    "ingest": "graphs.ingest",
    "split_edges": "graphs.splits",
    "evaluate": "measures.evaluate",
    "cluster": "partitions.clustering",
    "order": "partitions.order",
    "compare": "measures.compare.running",
    "open_partition": "store.loading",
    "save": "partitions.methods",
    "restore": "store.restoring",
    "upgrade": "store.upgrading",
    "verify": "store.verifying",
    "work": "machines.tasks",
    "Options": "core.options",
    "generate.ba": "generate",
    "generate.grid": "generate",
    "generate.planted": "generate",
    "generate.rmat": "generate",
    "generate.typed": "generate.tables",
    "export.dgl": "export.dgl",
    "export.glt": "export.glt",
    "export.pyg": "export.pyg",
    "export.text": "export.text",
    "export.wholegraph": "export.wholegraph",
    "train.compare": "train.comparing",
}
"""The module of each function that is read. Algorithms are in the registry of the core instead."""

_ROOT = __package__.partition(".")[0]


@cache
def algorithms() -> dict[str, _core.Algorithm]:
    """Return the registry of the core."""
    return {algorithm.name: algorithm for algorithm in _core.algorithms()}


@cache
def _described() -> dict[str, _core.Algorithm]:
    return algorithms() | {algorithm.name: algorithm for algorithm in _core.successors()}


@cache
def _imported(name: str) -> Callable[..., Any] | None:
    """Return a function that needs neither Polars nor torch: it is not read."""
    if name == "plan":
        from ..partitions.methods import Loadable

        return Loadable.plan
    if name in SOURCES or not name.startswith("train."):
        return None
    from ..train.registry import METHODS, of

    method_name = name.removeprefix("train.")
    return of(method_name).function if method_name in METHODS else None


@cache
def signature_of(name: str) -> inspect.Signature:
    """Return the signature of a function of :data:`SOURCES` or of an algorithm. Annotations are text or types."""
    if (imported := _imported(name)) is not None:
        return inspect.signature(imported)
    if name not in SOURCES:
        return documents.signature(_described()[name])
    module, function = _Module.of(SOURCES[name]), _definition(name)
    function.body = function.body[:1]
    tree = ast.Module([function], type_ignores=[])
    exec(compile(tree, module.file, "exec", annotations.compiler_flag, dont_inherit=True), module)
    return inspect.signature(module[function.name])


def text_of(name: str) -> str:
    """Return the docstring of a function, a class or an algorithm."""
    if (imported := _imported(name)) is not None:
        return imported.__doc__ or ""
    if name not in SOURCES:
        return documents.document(_described()[name])
    return _docstring(name)


def _docstring(name: str) -> str:
    """Return a docstring. Only the lines of its function are parsed: all of a dozen files take most of ``--help``."""
    text, function = _text(_file(SOURCES[name])), name.rpartition(".")[2]
    starts = [*re.finditer(rf"^( *)(?:def|class) {function}\b", text, re.MULTILINE)]
    start = [each for each in starts if not each[1]][-1:] or starts[-1:]
    below = re.compile(rf"^ {{0,{len(start[0][1])}}}[^\s)]", re.MULTILINE)
    end = below.search(text, start[0].end())
    lines = text[start[0].start() : end.start() if end else None]
    (node,) = ast.parse(textwrap.dedent(lines)).body
    assert isinstance(node, ast.FunctionDef | ast.ClassDef)
    return ast.get_docstring(node) or ""


def _file(module: str) -> Path:
    """Return the source file of a module of the package."""
    file = Path(__file__).parents[1].joinpath(*module.split("."))
    package = file / "__init__.py"
    return package if package.exists() else file.with_suffix(".py")


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


@cache
def _documented(name: str) -> list[DocstringParam]:
    return parse_docstring(text_of(name), DocstringStyle.NUMPYDOC).params


def described(name: str, parameter: str) -> tuple[str, str]:
    """Return type and description of a parameter. "As in :func:`other`" is followed to the other function."""
    own = "", ""
    for each in _documented(name):
        if parameter in each.arg_name.split(", "):
            own = each.type_name or "", each.description or ""
    if reference := re.match(r"As (?:in )?:\w+:`~?(?:[\w.]*\.)?(\w+)`", own[1]):
        beside = f"{name.rpartition('.')[0]}.{reference[1]}"
        known = [other for other in SOURCES if other.rpartition(".")[2] == reference[1]]
        other = described(
            beside if beside in SOURCES or _imported(beside) else (known or [reference[1]])[0], parameter
        )
        return other if other[1] else own
    return own


class _Module(dict[str, Any]):
    """The names of a module. Each is evaluated on first use. Decorators and defaults need only a few cheap ones."""

    def __init__(self, name: str) -> None:
        super().__init__(__name__=name)
        self.file = _file(name.partition(".")[2])
        self.package = name if self.file.stem == "__init__" else name.rpartition(".")[0]
        self.tree = ast.parse(_text(self.file))

    @staticmethod
    @cache
    def of(name: str) -> _Module:
        """Return a module of the package."""
        return _Module(f"{_ROOT}.{name}")

    def __missing__(self, name: str) -> Any:
        for node in self.tree.body:
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and _assigned(node) == name:
                self[name] = eval(compile(ast.Expression(node.value), self.file, "eval"), self)
                return self[name]
            if isinstance(node, ast.ImportFrom):
                for each in node.names:
                    if (each.asname or each.name) == name:
                        source = resolve_name("." * node.level + (node.module or ""), self.package)
                        # A constant may stand in a module that is slow to import, or be made by code of that module.
                        if node.level and name.isupper():
                            with suppress(NameError):
                                return _Module.of(source.partition(".")[2])[each.name]
                        return getattr(import_module(source), each.name)
        raise KeyError(name)


def spelled_out(name: str, annotation: str) -> str:
    """Replace names of ``Literal`` types by their definitions."""
    if (imported := _imported(name)) is not None:
        names = inspect.unwrap(imported).__globals__
        return re.sub(r"\b[A-Z]\w+\b(?!\[)", lambda word: _spelled(names.get(word[0])) or word[0], annotation)
    if name not in SOURCES:
        return annotation
    module = _Module.of(SOURCES[name])
    return re.sub(r"\b[A-Z]\w+\b(?!\[)", lambda word: _literal(module, word[0]) or word[0], annotation)


def _spelled(annotation: Any) -> str | None:
    return inspect.formatannotation(annotation) if get_origin(annotation) is Literal else None


def _literal(module: _Module, name: str) -> str | None:
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and _assigned(node) == name:
            value = ast.unparse(node.value)
            return value if value.startswith("Literal[") else None
        if isinstance(node, ast.ImportFrom) and node.level and name in {each.name for each in node.names}:
            source = resolve_name("." * node.level + (node.module or ""), module.package)
            return _literal(_Module.of(source.partition(".")[2]), name)
    return None


def _assigned(node: ast.Assign | ast.AnnAssign) -> str:
    return ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])


def _definition(name: str) -> ast.FunctionDef | ast.ClassDef:
    """Return the last definition of a function, method or class. It follows the overloads."""
    module, function = _Module.of(SOURCES[name]), name.rpartition(".")[2]
    for nodes in (module.tree.body, ast.walk(module.tree)):
        if matches := [
            each
            for each in nodes
            if isinstance(each, ast.FunctionDef | ast.ClassDef) and each.name == function
        ]:
            return matches[-1]
    raise LookupError(name)
