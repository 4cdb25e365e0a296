"""How wrong calls of public functions are refused: unknown, missing and superfluous arguments, in one form."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, TypeVar, cast

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
        rest = f". Pass the others by name, such as {others[0]}=" if others else ""
        raise TypeError(f"{function}() takes by position only {', '.join(by_position) or 'nothing'}{rest}")
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
            raise TypeError(f"{function}() needs {name!r}. Pass {name}=")


def called_well(function: Function) -> Function:
    """Decorate a public function without options, so that a call with wrong arguments is refused as everywhere."""
    known = inspect.signature(function)

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        name = type(args[0]).__name__ if function.__name__ == "__init__" else function.__name__
        refuse_misuse(name, known, args, given)
        return function(*args, **given)

    return cast(Function, call)
