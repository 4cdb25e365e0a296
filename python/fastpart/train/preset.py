"""The decorator of the training methods: their signature, their docstring and their defaults, from what they share."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Container, Iterator
from typing import Any, TypeVar, cast, is_typeddict

from ..core.options import unpacked, with_options
from . import keywords
from .calls import recorded
from .config import DEFAULTS
from .trainer import WITHOUT

Function = TypeVar("Function", bound=Callable[..., Any])

_ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)
"""The begin of the description of a parameter in a section of numpydoc."""


def preset(**defaults: Any) -> Callable[[Function], Function]:
    """Decorate a training method, which takes ``**training: Unpack[...]`` of a typed dictionary of :mod:`.keywords`.

    The dictionary describes what several methods share. What the docstring of the method says of such a parameter is
    added to it. The method gets all parameters. ``defaults`` are those of this method alone.
    """
    known = {**DEFAULTS, **keywords.DEFAULTS, **defaults}

    def decorate(function: Function) -> Function:
        without = WITHOUT[function.__name__]
        taken = {name: known.get(name) for name in unpacked(function).__annotations__ if name not in without}

        @functools.wraps(function)
        def filled(*args: Any, **given: Any) -> Any:
            return function(*args, **taken | given)

        filled.__doc__ = _documented(function, taken)
        return recorded(with_options(cast(Function, filled), known, without))

    return decorate


def _documented(function: Callable[..., Any], taken: Container[str]) -> str:
    """Return the docstring of a method with the parameters that it shares with others."""
    before, own, after = _split(inspect.getdoc(function) or "")
    entries = dict(_entries(own))
    for names, text in _shared():
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


def _shared() -> Iterator[tuple[str, str]]:
    """Yield the line with the names of each parameter that methods share, and its description."""
    for section in vars(keywords).values():
        text = getattr(section, "__doc__", None) or ""
        if is_typeddict(section) and "Parameters\n" in text:
            yield from _entries(_split(inspect.cleandoc(text))[1])
