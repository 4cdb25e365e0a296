"""How wrong calls of public functions are refused: unknown, missing and superfluous arguments, in one form.

The traceback of a refused argument ends at the public function: see :class:`Boundary`.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from inspect import Parameter, Signature
from types import TracebackType
from typing import Any, TypeVar, cast

from ..errors import ParameterError, arg, named, refusal
from .parameters import no_parameter

Function = TypeVar("Function", bound=Callable[..., Any])

_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)


def refuse_misuse(
    function: str,
    known: Signature,
    args: Sequence[Any],
    given: Mapping[str, Any],
    missing: Mapping[str, str] | None = None,
) -> None:
    """Raise a TypeError unless a function can be called with these arguments.

    Parameters
    ----------
    function : str
        Its name, as users write it.
    known : inspect.Signature
        Its parameters.
    args, given
        The arguments by position and by name.
    missing : mapping of str to str, optional
        Parameters of other functions that this one does not take, and why.
    """
    parameters = {name: each for name, each in known.parameters.items() if name not in ("self", "cls")}
    names = [name for name, each in parameters.items() if each.kind is not Parameter.VAR_KEYWORD]
    if len(names) == len(parameters):
        for name in given:
            if name not in parameters:
                raise no_parameter(function, name, names, (missing or {}).get(name, ""))
    by_position = [name for name in names if parameters[name].kind in _BY_POSITION]
    several = any(each.kind is Parameter.VAR_POSITIONAL for each in parameters.values())
    count = len(args) - len(known.parameters) + len(parameters)  # without self
    if count > len(by_position) and not several:
        others = [name for name in names if name not in by_position and name not in given]
        rest = f". Pass the others by name, such as {arg(others[0])}" if others else ""
        raise refusal(
            TypeError, f"{function}() takes by position only {', '.join(by_position) or 'nothing'}{rest}"
        )
    for name in by_position[: max(count, 0)]:
        if name in given:
            raise TypeError(f"{function}() got {name!r} by position and by name. Pass it once")
    for name in names[min(max(count, 0), len(by_position)) :]:
        each = parameters[name]
        if (
            each.default is Parameter.empty
            and each.kind is not Parameter.VAR_POSITIONAL
            and name not in given
        ):
            raise refusal(TypeError, f"{function}() needs {name!r}. Pass {arg(name)}")


def no_attribute(module: str, name: str, valid: Iterable[str]) -> AttributeError:
    """Return the error for a name that a public module does not have. It says where the name is, or what is close."""
    package = sys.modules[module.partition(".")[0]]
    text, here = f"module {module!r} has no attribute {name!r}", module.replace(package.__name__, "fp", 1)
    moved = {each: f"fp.{other}.{each}" for other, names in package._MOVED.items() for each in names.split()}
    elsewhere = {each: f"fp.{each}" for each in package.__all__} | moved
    if name.startswith("_"):
        rest = ""
    elif name in elsewhere:
        rest = f". It is {elsewhere[name]}" + (" now" if module == package.__name__ else "")
    elif name in package._INSTEAD:
        rest = f". {package._INSTEAD[name]}"
    else:
        known = {each: f"{here}.{each}" for each in valid}
        if module == package.__name__:
            known = moved | known
        close = get_close_matches(name.lower(), known, n=1, cutoff=0.65)
        rest = f". Did you mean {known[close[0]]}?" if close else f". dir({here}) lists its names"
    return AttributeError(text + rest)


def refusing(module: str, valid: Iterable[str]) -> Callable[[str], Any]:
    """Return the function ``__getattr__`` of a module that has all its names."""

    def refuse(name: str) -> Any:
        raise no_attribute(module, name, valid)

    return refuse


_OURS = {__name__.partition(".")[0], "contextlib", "functools"}
"""The package, and the modules through which it enters its own contexts and properties."""


class Boundary:
    """The context in which the decorator of a public function calls it, or checks its arguments.

    A refused argument leaves it with two frames of this package in its traceback: that of the decorator, and that of
    the function, or of the check if it was not called. What lies between and below is how arguments are checked, which
    tells users nothing. All other errors keep their frames, and so do refusals from code of users or of other packages
    that the function called.
    """

    def __init__(self, function: Callable[..., Any], given: Mapping[str, Any]) -> None:
        self._function = function
        self._given = given

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, caller: TracebackType | None
    ) -> None:
        if caller is None or not isinstance(error, ParameterError | TypeError):
            return
        below = list(_frames(caller.tb_next))
        modules = {each.tb_frame.f_globals.get("__name__", "").partition(".")[0] for each in below}
        if not below or modules - _OURS:
            return
        body = inspect.unwrap(self._function).__code__
        called = next((each for each in below if each.tb_frame.f_code is body), None)
        if called is None or self._refuses(error):
            last = called or below[-1]
            last.tb_next = None
            caller.tb_next = last

    def _refuses(self, error: BaseException) -> bool:
        """Return whether the text begins with an argument of the function, as no error of Python does."""
        names, _ = named(str(error))
        return bool(names) and (
            names[0] in self._given or names[0] in full_signature(self._function).parameters
        )


def full_signature(function: Callable[..., Any]) -> Signature:
    """Return the signature with all keywords, also those that help leaves to objects of :mod:`fastpart.options`."""
    taken = getattr(function, "taken", None)
    return inspect.signature(function) if taken is None else taken.flat


def spread(
    function: Callable[..., Any], given: Mapping[str, Any], without: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the arguments of a call with the fields of objects in the place of the objects."""
    taken = getattr(function, "taken", None)
    return dict(given) if taken is None else taken.spread(given, without)


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def called_well(function: Function) -> Function:
    """Decorate a public function without options, so that a call with wrong arguments is refused as everywhere."""
    known = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        name = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
        with Boundary(call, given):
            refuse_misuse(name, known, args, given)
            return function(*args, **given)

    return cast(Function, call)
