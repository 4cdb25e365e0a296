"""Groups of options: dataclasses whose fields are parameters that several functions take.

Each field has a type, a bound and a default, and is described once, in the docstring of its group. Groups are put
together by inheritance: the options of a function are one class. Under the decorator :func:`.options.taking` users pass
the fields as keywords, and the function gets one checked object, which is passed on whole.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache, partial, reduce
from inspect import Parameter
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Self, Union, get_args, get_origin, get_type_hints

from . import parameters

Check = Callable[[str, Any], Any]
"""Returns the value of a parameter in its internal form, given its name, or raises."""

FOUND = "found"
"""Marks a field that users do not pass, as in ``Annotated[int, FOUND]``: its value is found later."""


class Within(NamedTuple):
    """The bounds of an integer, as in ``Annotated[int, Within(1, 64)]``."""

    low: int
    high: int


class Accepts(NamedTuple):
    """The type that users may pass where the field has another one, and the function that turns one into the other."""

    type: Any
    check: Check


Count = Annotated[int, Within(1, 2**31 - 1)]
"""A number of things, at least 1."""

Seed = Annotated[int, Accepts(int, lambda _, value: parameters.seed(value))]
"""The number from which all random choices follow."""

Size = Annotated[int | None, Accepts(int | str | None, parameters.size)]
"""A number of bytes, which users may write as ``"4G"``."""


@dataclass(frozen=True, kw_only=True)
class OptionGroup:
    """Parameters of functions. Its subclasses describe theirs in a section "Parameters" of their docstring.

    The annotation of a field says what is valid: ``bool``, a ``Literal``, an integer :class:`Within` bounds, a type
    with a function that checks its values, as in ``Annotated[float, positive]``, or what it :class:`Accepts`.
    """

    def __post_init__(self) -> None:
        """Groups check here what depends on several fields, and call that of the others."""

    @classmethod
    def checked(cls, given: Mapping[str, Any]) -> Self:
        """Check the arguments of a user. Those that are missing have their default, other names are ignored."""
        checks = _checks(cls)  # type: ignore[arg-type]  # mypy holds no class for hashable
        return cls(
            **{
                name: value if (check := checks[name]) is None else check(name, value)
                for name, value in given.items()
                if name in checks
            }
        )


@cache
def _checks(group: Any) -> dict[str, Check | None]:
    """Return the check of each field that users may pass."""
    return {name: _check_of(hint) for name, hint in _hints(group).items()}


def _hints(group: type[OptionGroup]) -> dict[str, Any]:
    """Return the annotations of the fields that users may pass, those of a class before those of its bases."""
    hints = get_type_hints(group, include_extras=True)
    own = {name for each in fields(group) for name in [each.name] if FOUND not in _metadata(hints[name])}
    ordered = [name for base in group.__mro__ for name in inspect.get_annotations(base) if name in own]
    return {name: hints[name] for name in dict.fromkeys(ordered)}


def _metadata(hint: Any) -> tuple[Any, ...]:
    return getattr(hint, "__metadata__", ())


def _check_of(hint: Any) -> Check | None:
    """Return the check that an annotation asks for."""
    for each in _metadata(hint):
        if isinstance(each, Within):
            return partial(parameters.integer, low=each.low, high=each.high)
        if isinstance(each, Accepts):
            return each.check
        if callable(each):
            return each  # type: ignore[no-any-return]
    if hint is bool:
        return parameters.flag
    if get_origin(hint) is Literal:
        return partial(parameters.choice, valid=get_args(hint))
    members = [each for each in get_args(hint) if each is not NoneType]
    if get_origin(hint) in (Union, UnionType) and len(members) == 1 and (check := _check_of(members[0])):
        return partial(_optional, check)
    return None


def _optional(check: Check, name: str, value: Any) -> Any:
    return None if value is None else check(name, value)


def parameters_of(
    group: type[OptionGroup], defaults: Mapping[str, Any], without: Container[str] = ()
) -> dict[str, Parameter]:
    """Return the keyword parameters of a group by name. ``defaults`` holds those that are not of the group."""
    plain, known = get_type_hints(group), {each.name: each.default for each in fields(group)}
    found = {}
    for name, hint in _hints(group).items():
        if name not in without:
            accepted = [each.type for each in _metadata(hint) if isinstance(each, Accepts)]
            default, annotation = defaults.get(name, known[name]), (*accepted, _shown(plain[name]))[0]
            found[name] = Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    return found


def _shown(annotation: Any) -> Any:
    """Return a union as users write it, ``int | None``, which help and stubs show."""
    return reduce(or_, get_args(annotation)) if get_origin(annotation) is Union else annotation


_ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)
"""The begin of the description of a parameter in a section of numpydoc."""


def documented(function: Callable[..., Any], group: type[OptionGroup], taken: Container[str]) -> str:
    """Return the docstring of a function with the descriptions of the fields that it takes.

    What the function itself says of a field is added to what the group says of it.
    """
    before, own, after = split(inspect.getdoc(function) or "")
    entries = dict(entries_of(own))
    for base in group.__mro__:
        for names, text in entries_of(split(inspect.cleandoc(base.__doc__ or ""))[1]):
            of = names.partition(" :")[0]
            if of.partition(",")[0] in taken:
                entries[names] = text + entries.pop(of, "")
    parameters = "".join(f"{names}\n{text}" for names, text in entries.items())
    return f"{before}{parameters}\n{after}"


def split(text: str) -> tuple[str, str, str]:
    """Return a docstring up to the list of parameters, that list, and the rest."""
    before, title, rest = text.partition("Parameters\n----------\n")
    found = re.search(r"\n\n(?=\w+\n-+\n)", rest)
    end = len(rest) if found is None else found.start() + 1
    return before + title, rest[:end].rstrip("\n") + "\n", rest[end:].lstrip("\n")


def entries_of(section: str) -> Iterator[tuple[str, str]]:
    """Yield the line with the names of a parameter, and its description."""
    for entry in filter(str.strip, _ENTRY.split(section)):
        names, _, text = entry.partition("\n")
        yield names, text.rstrip("\n") + "\n"
