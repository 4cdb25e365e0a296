"""Groups of options: dataclasses whose fields are parameters that several functions take.

Each field has a type, a bound and a default, and is described once, in the docstring of its group. Groups are put
together by inheritance: the options of a function are one class. Under the decorator :func:`.options.taking` users pass
the fields as keywords, and the function gets one checked object, which is passed on whole.

A group also says which of its fields users may pass together, in one object of :mod:`fastpart.options`. Signatures and
docstrings of functions with many parameters have these objects in the place of all but the most used fields.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, make_dataclass
from functools import cache, cached_property, partial, reduce
from inspect import Parameter, Signature
from operator import or_
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NamedTuple,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from ..errors import arg, refusal
from . import parameters
from .calls import called_well
from .parameters import no_parameter

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

    Attributes
    ----------
    together : mapping of str to str
        The fields of this class, without its bases, that users may pass together, by the name of the object.
    """

    together: ClassVar[Mapping[str, str]] = {}

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


def documented(doc: str, group: type[OptionGroup], taken: Container[str]) -> str:
    """Return the docstring of a function with the descriptions of the fields that it takes.

    What the function itself says of a field is added to what the group says of it.
    """
    before, own, after = split(doc)
    entries = dict(entries_of(own))
    for base in group.__mro__:
        for names, text in entries_of(split(inspect.cleandoc(base.__doc__ or ""))[1]):
            of, colon, kind = names.partition(" :")
            kept = [name for name in of.split(", ") if name in taken]
            if kept:
                entries[", ".join(kept) + colon + kind] = text + entries.pop(of, "")
    parameters = "".join(f"{names}\n{text}" for names, text in entries.items())
    return f"{before}{parameters}\n{after}"


def described(doc: str, *, remarks: bool = False) -> set[str]:
    """Return the parameters that a docstring describes, or only those whose type it leaves to their group."""
    lines = [line for line, _ in entries_of(split(doc)[1]) if not (remarks and " :" in line)]
    return {name for line in lines for name in line.partition(" :")[0].split(", ")}


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


OBJECTS = {
    "data": "Data of vertices and edges, and how a partition directory holds it.",
    "records": "How the records of a source are read.",
    "bounds": "How large parts may be, and where vertices must be.",
    "network": "The model and the shape of the network.",
    "learning": "Loss, optimizer, epochs and scores of a training.",
    "batches": "What decides the mini-batches.",
    "fetching": "Where rows of features come from, and which of them stay in memory.",
    "run": "Which processes, machines, devices and folders work, and who hears of it.",
}
"""The objects of :mod:`fastpart.options` by the name of the parameter that takes them, and what each is about."""

MOST = 16
"""The most keywords in the signature of a public function."""

MOST_USED = (
    "graph features labels splits out balance balance_on time_limit epochs model lr batch_size fanouts device cache "
    "seed workers shuffle sampling temporal overwrite resume columns directedness weights num_vertices edge_features "
    "edge_splits halo_hops feature_dtype standardise hidden layers negatives sizes fixed connected"
)
"""Fields that stay in signatures beside their objects, as far as there is space. The most used ones come first."""


@dataclass(frozen=True, kw_only=True)
class OptionObject:
    """The base of the objects of :mod:`fastpart.options`. A field that was not given is ``...``."""

    @property
    def given(self) -> dict[str, Any]:
        """The fields that were given, by name. Functions have their own defaults for the others."""
        return {name: value for name, value in vars(self).items() if value is not ...}

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.given.items())})"
        )


@dataclass(frozen=True)
class Taken:
    """The keywords of a public function, and the objects that hold several of them.

    Attributes
    ----------
    function : str
        Its name.
    flat : inspect.Signature
        The signature without objects.
    objects : mapping of str to list of str
        The keywords that each object may hold, by the name of the object.
    """

    function: str
    flat: Signature
    objects: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, function: str, flat: Signature, groups: Iterable[type[OptionGroup]]) -> Self:
        """Return what a function takes whose keywords are those of groups, and others."""
        held: dict[str, list[str]] = {}
        for name, each in objects_of(groups):
            if each in flat.parameters and each not in held.setdefault(name, []):
                held[name].append(each)
        # A function with a parameter of that name, such as the folder ``run`` of a training, takes no such object.
        free = [name for name in OBJECTS if held.get(name) and name not in flat.parameters]
        return cls(function, flat, {name: held[name] for name in free})

    @cached_property
    def whole(self) -> Signature:
        """The signature with all keywords and all objects."""
        return self.flat.replace(parameters=[*self.flat.parameters.values(), *self._entries()])

    @cached_property
    def hidden(self) -> set[str]:
        """The keywords that the signature leaves to the objects."""
        known = [each for each in self.flat.parameters.values() if each.name not in ("self", "cls")]
        if not self.objects or len(known) + len(self.objects) <= MOST:
            return set()
        held = {name for names in self.objects.values() for name in names}
        needed = {each.name for each in known if each.kind is not Parameter.KEYWORD_ONLY or _is_needed(each)}
        left = MOST - len(self.objects) - len({each.name for each in known} - (held - needed))
        return (
            held - needed - {*[name for name in MOST_USED.split() if name in held - needed][: max(left, 0)]}
        )

    @property
    def shown(self) -> Signature:
        """The signature that users see. ``**keywords`` stands for those that the objects hold."""
        hidden = self.hidden
        some = [each for each in self.flat.parameters.values() if each.name not in hidden]
        rest = [Parameter("keywords", Parameter.VAR_KEYWORD)] if hidden else []
        return self.flat.replace(parameters=[*some, *self._entries(), *rest])

    def _entries(self) -> list[Parameter]:
        return [
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=f"{name.capitalize()} | None")
            for name in self.objects
        ]

    def spread(self, given: Mapping[str, Any], without: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Return the arguments of a call with the fields of objects in the place of the objects."""
        flat = {name: value for name, value in given.items() if name not in self.objects}
        for name in self.objects:
            if (value := given.get(name)) is None:
                continue
            wanted = name.capitalize()
            if not isinstance(value, OptionObject) or type(value).__name__ != wanted:
                raise TypeError(
                    f"{name}: expected a fastpart.options.{wanted}, got {type(value).__name__}. "
                    f"Pass fp.options.{wanted}({self.objects[name][0]}=...)"
                )
            for field, each in value.given.items():
                if field not in self.flat.parameters:
                    why = (without or {}).get(field) or f"leave it out of {name}"
                    raise no_parameter(self.function, field, self.objects[name], why)
                if field not in self.objects[name]:  # another meaning of the name, or the main argument
                    raise refusal(
                        TypeError,
                        f"{field}: {self.function}() does not take it in {name}. Pass {arg(field)} by itself",
                    )
                if field in flat:
                    raise refusal(
                        TypeError,
                        f"{field}: it is also in {name}. Leave out {arg(field)}, or take it out of {name}",
                    )
                flat[field] = each
        return flat

    def documented(self, doc: str, own: Container[str] = ()) -> str:
        """Return a docstring without the descriptions that the objects have, and with the objects.

        Descriptions of the parameters in ``own`` stay.
        """
        if not self.objects:
            return doc
        before, section, after = split(doc)
        hidden, lines = self.hidden, list[str]()
        for line, text in entries_of(section):
            names, colon, accepted = line.partition(" :")
            shown = [name for name in names.split(", ") if name not in hidden or name in own]
            lines += [f"{', '.join(shown)}{colon}{accepted}\n{text}"] if shown else []
        for name, fields_of in self.objects.items():
            inside = [field for field in fields_of if field in hidden]
            which = (
                f"Beside keywords above: {', '.join(inside)}"
                if inside
                else f"Keywords above that it may hold: {', '.join(fields_of)}"
            )
            known = wrapped(f"{OBJECTS[name]} {which}.")
            lines.append(f"{name} : fastpart.options.{name.capitalize()}, optional\n{known}")
        if hidden:
            lines.append(f"**keywords\n{wrapped('Fields of these objects, each by itself.')}")
        return f"{before}{''.join(lines)}\n{after}"


def _is_needed(parameter: Parameter) -> bool:
    return parameter.default is Parameter.empty


def wrapped(text: str) -> str:
    """Return a description as it stands below the name of a parameter."""
    return textwrap.fill(text, 114, initial_indent="    ", subsequent_indent="    ") + "\n"


def objects_of(groups: Iterable[type[OptionGroup]]) -> Iterator[tuple[str, str]]:
    """Yield the fields of groups that users may pass in an object, each behind the name of the object."""
    for group in groups:
        for base in group.__mro__:
            for name, names in vars(base).get("together", {}).items():
                yield from ((name, field) for field in names.split())


def option_object(
    name: str, groups: Sequence[type[OptionGroup]], docs: Iterable[str] = ()
) -> type[OptionObject]:
    """Return the class of an object that holds fields of groups. Its docstring has what the groups say of them.

    A field that several groups have takes what any of them takes, and has the description of the first group.
    """
    wanted = {field for of, field in objects_of(groups) if of == name.lower()}
    types: dict[str, list[Any]] = {}
    for group in groups:
        own = {field for of, field in objects_of([group]) if of == name.lower()}
        for field, parameter in parameters_of(group, {}).items():
            if field in own:
                types.setdefault(field, []).append(parameter.annotation)
    held = {field: Any if Any in several else reduce(or_, several) for field, several in types.items()}
    texts = [*docs, *(base.__doc__ or "" for group in groups for base in group.__mro__)]
    told: dict[str, str] = {}
    for text in texts:
        for line, description in entries_of(split(inspect.cleandoc(text))[1]):
            names, colon, accepted = line.partition(" :")
            new = [each for each in names.split(", ") if each in wanted and each not in told]
            entry = f"{', '.join(new)}{colon}{accepted}\n{description}"
            told |= dict.fromkeys(new, "") | ({new[0]: entry} if new else {})
    doc = f"{OBJECTS[name.lower()]}\n\nParameters\n----------\n{''.join(map(told.__getitem__, held))}"
    made = make_dataclass(
        name,
        [(field, annotation, ...) for field, annotation in held.items()],
        bases=(OptionObject,),
        namespace={"__doc__": doc, "__module__": "fastpart.options"},
        frozen=True,
        kw_only=True,
        repr=False,
    )
    made.__init__ = called_well(made.__init__)  # type: ignore[misc]
    return made
