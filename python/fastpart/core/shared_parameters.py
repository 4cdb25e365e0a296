"""Parameters that functions share. Each is described once, in a typed dictionary, and stands in all docstrings."""

import functools
import inspect
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, cast, is_typeddict

from .calls import Boundary, Function, refuse_misuse
from .options import expanded, unpacked

_ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)
"""The begin of the description of a parameter in a section of numpydoc."""


def with_parameters(
    function: Function, defaults: Mapping[str, Any] | None = None, without: Container[str] = ()
) -> Function:
    """Decorate a function that takes ``**given: Unpack[...]`` of a typed dictionary.

    It is called with all entries but those that it is ``without``. Its signature and its docstring list them one by
    one. ``defaults`` holds the defaults that are not None. The dictionary and its bases, which are in one module,
    describe the parameters. What the function itself says of one is added.
    """
    known = expanded(function, defaults or {}, without)
    own = inspect.signature(function).parameters
    entries = {name: each.default for name, each in known.parameters.items() if name not in own}

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        with Boundary(call, given):
            refuse_misuse(function.__name__, known, args, given)
            return function(*args, **entries | given)

    if entries:
        call.__doc__ = _documented(function, entries)
    call.__signature__ = known  # type: ignore[attr-defined]
    return cast(Function, call)


def _documented(function: Callable[..., Any], taken: Container[str]) -> str:
    before, own, after = _split(inspect.getdoc(function) or "")
    entries = dict(_entries(own))
    for names, text in _shared(unpacked(function)):
        of = names.partition(" :")[0]
        if of.partition(",")[0] in taken:
            entries[names] = text + entries.pop(of, "")
    parameters = "".join(f"{names}\n{text}" for names, text in entries.items())
    return f"{before}{parameters}\n{after}"


def _split(text: str) -> tuple[str, str, str]:
    """Return a docstring up to the list of parameters, that list, and the rest."""
    before, title, rest = text.partition("Parameters\n----------\n")
    found = re.search(r"\n\n(?=\w+\n-+\n)", rest)
    end = len(rest) if found is None else found.start() + 1
    return before + title, rest[:end].rstrip("\n") + "\n", rest[end:].lstrip("\n")


def _entries(section: str) -> Iterator[tuple[str, str]]:
    """Yield the line with the names of a parameter, and its description."""
    for entry in filter(str.strip, _ENTRY.split(section)):
        names, _, text = entry.partition("\n")
        yield names, text.rstrip("\n") + "\n"


def _shared(dictionary: Any) -> Iterator[tuple[str, str]]:
    """Yield what a typed dictionary and its bases describe."""
    names, module = dictionary.__annotations__.keys(), vars(sys.modules[dictionary.__module__])
    dictionaries = [each for each in module.values() if is_typeddict(each)]
    return _described(each for each in dictionaries if each.__annotations__.keys() <= names)


def _described(dictionaries: Iterable[Any]) -> Iterator[tuple[str, str]]:
    """Yield the line with the names of each parameter of some typed dictionaries, and its description."""
    for each in dictionaries:
        if "Parameters\n" in (text := each.__doc__ or ""):
            yield from _entries(_split(inspect.cleandoc(text))[1])
