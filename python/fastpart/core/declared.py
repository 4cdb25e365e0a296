"""Methods whose signature and documentation stand in one package, and whose body is in a package above it."""

import functools
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar, cast

from ..errors import InternalError
from .calls import Function
from .shared_parameters import with_parameters

Given = ParamSpec("Given")
Result = TypeVar("Result")

_BODIES: dict[str, Callable[..., Any]] = {}
"""The body of each method, by its qualified name. It is filled when the first of them is called."""

_METHODS = f"{__name__.partition('.')[0]}.methods"
"""The module of the bodies. It imports the packages that it needs."""


def declared(method: Function, defaults: Mapping[str, Any] | None = None) -> Function:
    """Decorate a method whose body stands in ``fastpart.methods``, under :func:`bind`. It is the only way up.

    It takes ``defaults`` as :func:`.shared_parameters.with_parameters`.
    """

    @functools.wraps(method)
    def call(*args: Any, **given: Any) -> Any:
        if not _BODIES:
            import_module(_METHODS)
        return _BODIES[method.__qualname__](*args, **given)

    return with_parameters(cast(Function, call), defaults)


def elsewhere() -> NoReturn:
    """Stand where the body of a declared method would stand. It is never reached: the decorator calls that one."""
    raise InternalError("a method without the decorator `declared` has its body in fastpart.methods")


def bind(
    method: Callable[Concatenate[Any, Given], Result],
) -> Callable[[Callable[Concatenate[Any, Given], Result]], None]:
    """Decorate the body of a declared method. Type checkers compare its parameters with those of the method."""

    def to(body: Callable[Concatenate[Any, Given], Result]) -> None:
        body.__qualname__ = method.__qualname__  # errors name the method
        _BODIES[method.__qualname__] = body

    return to
