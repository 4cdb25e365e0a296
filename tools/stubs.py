"""Write the stubs for type checkers and editors, of functions whose parameters stand elsewhere: ``make stubs``."""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from functools import cache
from importlib.util import resolve_name
from inspect import Parameter, Signature
from pathlib import Path
from types import ModuleType, NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin

from fastpart import _core, options, train
from fastpart.core import parameters
from fastpart.core.calls import full_signature
from fastpart.core.option_groups import OptionObject
from fastpart.core.options import NAMES, Options, entries_of
from fastpart.partitions import documents, loader_options, methods
from fastpart.partitions.documents import literal
from fastpart.partitions.partitioners import builtin
from fastpart.train import comparing, frames
from fastpart.train.registry import METHODS
from fastpart.train.registry import of as method

PACKAGE = Path(parameters.__file__).parents[1]

HEADING = "# Written by `make stubs`. Do not edit."

Imports = dict[str, set[str]]
"""The names to import by their module. A module of which no name is needed stands with its statement."""


def stub_file(
    functions: Iterable[Callable[..., Any]],
    more: Iterable[str] = (),
    names: Iterable[tuple[str, str]] = (),
) -> str:
    """Return the text of a stub file with functions, methods among them, and further lines.

    Methods stand in their classes, which get no others but those of their bases. Names in annotations that are text are
    imported from where the module of the function has them, and ``names`` as they say: module and name. Run
    ``ruff format`` on the result.
    """
    imports: Imports = defaultdict(set)
    for module, name in names:
        imports[module].add(name)
    body, before = list[str](), ""
    for function in functions:
        inside = inspect.unwrap(function).__qualname__.rpartition(".")[0]
        if inside and inside != before:
            body += ["", _class(getattr(_module_of(function), inside), imports)]
        body += [("    " if inside else "") + line for line in stub_of(function, imports)]
        before = inside
    return "\n".join([HEADING, *_statements(imports), "", *more, *body]) + "\n"


def functions_of(module: ModuleType) -> list[Callable[..., Any]]:
    """Return the public functions of a module that it defines, and the public methods of its classes."""
    own = [each for each in vars(module).values() if getattr(each, "__module__", "") == module.__name__]
    found = [[*vars(each).values()] if isinstance(each, type) else [each] for each in own]
    functions = [each for several in found for each in several if inspect.isfunction(each)]
    return [each for each in functions if not each.__name__.startswith("_")]


def _class(of: type, imports: Imports) -> str:
    written = _Written(sys.modules[of.__module__], imports)
    bases = ", ".join(written.text(each) for each in of.__bases__ if each is not object)
    return f"class {of.__name__}({bases}):" if bases else f"class {of.__name__}:"


def _module_of(function: Callable[..., Any]) -> ModuleType:
    return sys.modules[inspect.unwrap(function).__module__]


def stub_of(function: Callable[..., Any], imports: Imports) -> list[str]:
    """Return the definition of a function, and add to ``imports`` the names that it needs by their module."""
    written = _Written(_module_of(function), imports)
    known = full_signature(function)
    objects = _objects_of(function)
    imports["fastpart.options"] |= {each.name.capitalize() for each in objects}
    given = [_optional(each, function) for each in known.parameters.values()]
    if all_options := _takes_options(known):
        given = [each for each in given if each.name not in NAMES]
        imports["typing"].add("Unpack")
        imports[Options.__module__].add(Options.__name__)
    given = [
        each if each.annotation is Parameter.empty else each.replace(annotation=written.text(each.annotation))
        for each in given
    ]
    result = written.text(known.return_annotation)
    return definition(
        function.__name__,
        known.replace(parameters=[*given, *objects], return_annotation=result),
        options="**options: Unpack[Options]" if all_options else "",
    )


def _objects_of(function: Any) -> list[Parameter]:
    """Return the parameters of a function that take objects of options."""
    taken = getattr(function, "taken", None)
    return [] if taken is None else [taken.whole.parameters[name] for name in taken.objects]


def _optional(each: Parameter, function: Any) -> Parameter:
    """Return a parameter that need not be given where an object may hold it."""
    taken = getattr(function, "taken", None)
    held = set() if taken is None else set().union(*taken.objects.values())
    needed = each.kind is Parameter.KEYWORD_ONLY and each.default is Parameter.empty
    return each.replace(default=...) if needed and each.name in held else each


def definition(name: str, signature: Signature, options: str = "") -> list[str]:
    """Return the definition of a function whose annotations are text."""
    lines, by_name = [f"def {name}("], False
    for each in signature.parameters.values():
        if each.kind is Parameter.KEYWORD_ONLY and not by_name:
            lines.append("    *,")
        by_name = by_name or each.kind in (Parameter.KEYWORD_ONLY, Parameter.VAR_POSITIONAL)
        annotation = "" if each.annotation is Parameter.empty else f": {each.annotation}"
        default = "" if each.default is Parameter.empty else f" = {_default(each.default)}"
        lines.append(f"    {_STARS.get(each.kind, '')}{each.name}{annotation}{default},")
    if lines[-1] == "    *,":
        lines.pop()
    if options:
        lines.append(f"    {options},")
    return [*lines, f") -> {signature.return_annotation}: ..."]


_STARS: dict[Any, str] = {Parameter.VAR_POSITIONAL: "*", Parameter.VAR_KEYWORD: "**"}


def _takes_options(known: Signature) -> bool:
    """Return whether a function takes all that long calls take, with their defaults."""
    usual = {each.name: each.default for each in entries_of(Options)}
    return usual == {name: each.default for name, each in known.parameters.items() if name in usual}


def _default(value: Any) -> str:
    text = literal(value)
    try:
        ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return "..."
    return text


class _Written:
    """Annotations of functions of a module as text, and the imports that the text needs."""

    def __init__(self, module: ModuleType, imports: Imports) -> None:
        self._module, self._imports = module, imports

    def text(self, hint: Any) -> str:
        """Return an annotation as text."""
        if isinstance(hint, str):
            for node in ast.walk(ast.parse(hint, mode="eval")):
                if isinstance(node, ast.Name):
                    self._import(node.id)
            return hint
        if hint in (None, NoneType):
            return "None"
        if hint is ...:
            return "..."
        if isinstance(hint, list):
            return f"[{', '.join(map(self.text, hint))}]"
        if alias := _aliases(self._module).get(_key(hint)):
            return self._imported(*alias)
        origin, args = get_origin(hint), get_args(hint)
        if origin in (Union, UnionType):
            if NoneType in args and len(args) > 2:  # what is left may have a name
                return f"{self.text(Union[tuple(each for each in args if each is not NoneType)])} | None"  # noqa: UP007
            return " | ".join(map(self.text, args))
        if origin is Literal:
            return f"{self._imported('typing', 'Literal')}[{', '.join(map(literal, args))}]"
        if origin is not None:
            return f"{self.text(origin)}[{', '.join(map(self.text, args))}]"
        return self._imported(hint.__module__, hint.__qualname__)

    def _import(self, name: str) -> None:
        """Import a name of the module from where the module has it."""
        if found := _imports_of(self._module).get(name):
            self._imports[found.module].add(found.name)
        elif not hasattr(builtins, name):
            self._imports[self._module.__name__].add(name)

    def _imported(self, module: str, name: str) -> str:
        if module != "builtins":
            self._imports[module].add(name.partition(".")[0])
        return name


class _Import(NamedTuple):
    """A name that a statement imports from a module, or the empty name of a statement that imports the module."""

    module: str
    name: str


@cache
def _imports_of(module: ModuleType) -> dict[str, _Import]:
    """Return the imports of a module by the name that they give, also those for type checkers only."""
    found = {}
    package = module.__package__ or ""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.Import):
            for each in node.names:
                renamed = f"{each.name} as {each.asname}" if each.asname else each.name
                found[each.asname or each.name] = _Import(f"import {renamed}", "")
        elif isinstance(node, ast.ImportFrom):
            source = resolve_name("." * node.level + (node.module or ""), package)
            for each in node.names:
                renamed = (
                    f"{each.name} as {each.asname}" if each.asname not in (None, each.name) else each.name
                )
                found[each.asname or each.name] = _Import(source, renamed)
    return found


def _key(hint: Any) -> str:
    """Return a text that equal types have in common, whatever the way in which they were united."""
    if get_origin(hint) in (Union, UnionType):
        return " | ".join(sorted(map(repr, get_args(hint))))
    return repr(hint)


@cache
def _aliases(module: ModuleType) -> dict[str, _Import]:
    """Return the names of the types that have one, by their expression."""
    return {
        _key(value): _imports_of(each).get(name, _Import(each.__name__, name))
        for each in (parameters, module)
        for name, value in vars(each).items()
        if not name.startswith("_") and get_origin(value) is not None
    }


def _statements(imports: Imports) -> Iterator[str]:
    """Yield the statements in the order of ruff."""

    def section(module: str) -> int:
        top = module.removeprefix("import ").partition(" ")[0].partition(".")[0]
        return 0 if top in sys.stdlib_module_names else 2 if top == "fastpart" else 1

    before = -1
    for module in sorted(
        filter(imports.get, imports), key=lambda each: (section(each), not each.startswith("import "), each)
    ):
        if section(module) > before >= 0:
            yield ""
        before = section(module)
        names = sorted(imports[module] - {""}, key=lambda name: (not name.isupper(), name[0].islower(), name))
        yield f"from {module} import {', '.join(names)}" if names else module


def of_partitioners() -> str:
    """Return the stub of the partitioners, from the registry of the core."""
    algorithms = [*_core.algorithms(), *_core.successors()]
    lines = [
        HEADING,
        "from collections.abc import Callable, Mapping, Sequence",
        "from typing import Any, Literal, Unpack, overload",
        "",
        "import numpy as np",
        "import numpy.typing as npt",
        "",
        "from ... import _core",
        "from ...core.options import Options",
        "from ...core.parameters import StrPath",
        "from ...machines.partitioning import Place",
        "from ...options import Bounds, Run",
        "from ..partition import EdgePartition, Partition, VertexPartition",
        "",
        "__all__: list[str] = [",
        *(f'    "{algorithm.name}",' for algorithm in sorted(algorithms, key=lambda known: known.name)),
        "]",
        "",
        "ALGORITHMS: dict[str, _core.Algorithm]",
        "PARTITIONERS: dict[str, Callable[..., Partition]]",
        "SUCCESSORS: dict[str, _core.Algorithm]",
        "",
        "def on_machines(algorithm: str, place: Place, graph: Any, k: int, **given: Any) -> Partition: ...",
        "",
    ]
    for algorithm in algorithms:
        for of in algorithm.of:  # with two of them, one overload each
            lines += ["@overload"] if len(algorithm.of) > 1 else []
            lines += _overload(algorithm, of)
    return "\n".join(lines) + "\n"


def _overload(algorithm: _core.Algorithm, of: str) -> list[str]:
    """Return the overload for partitions of ``of``."""
    given = []
    for each in documents.signature(algorithm).parameters.values():
        if each.name == "of":
            default = algorithm.of[0] if of == algorithm.of[0] else Parameter.empty
            each = each.replace(annotation=documents.words([of]), default=default)
        if each.name not in NAMES:
            given.append(each)
    given += _objects_of(getattr(builtin, algorithm.name))
    known = Signature(given, return_annotation=documents.RESULTS[of], __validate_parameters__=False)
    return definition(algorithm.name, known, options="**options: Unpack[Options]")


def of_options() -> str:
    """Return the stub of ``fastpart.options``."""
    imports: Imports = defaultdict(
        set, {"dataclasses": {"dataclass"}, OptionObject.__module__: {"OptionObject"}}
    )
    written, body = _Written(loader_options, imports), list[str]()
    for name in options.__all__:
        known = getattr(options, name)
        body += ["", "@dataclass(frozen=True, kw_only=True)", f"class {name}(OptionObject):"]
        body += [f"    {each.name}: {written.text(each.type)} = ..." for each in fields(known)]
    names = ["__all__: list[str]"]
    return "\n".join([HEADING, *_statements(imports), "", *names, *body]) + "\n"


_OF_TRAINING = [
    ("fastpart.train.registry", "register"),
    ("fastpart.train", "loggers as loggers"),
    ("fastpart.train.on_ray", "ray"),
    ("fastpart.train.opening", "open"),
    ("fastpart.train.predictions", "predict"),
]


def of_training() -> str:
    """Return the stub of ``fastpart.train``."""
    functions = [*(method(name).function for name in METHODS), frames.nodes, comparing.compare]
    names = ["__all__ = [", *(f'    "{name}",' for name in train.__all__), "]", ""]
    return stub_file(functions, names, _OF_TRAINING)


FILES: dict[str, Callable[[], str]] = {
    "options.pyi": of_options,
    "partitions/partitioners/builtin.pyi": of_partitioners,
    "partitions/methods.pyi": lambda: stub_file(functions_of(methods)),
    "train/__init__.pyi": of_training,
}


def main() -> None:
    """Write all stubs."""
    for name, text in FILES.items():
        (PACKAGE / name).write_text(text())


if __name__ == "__main__":
    main()
