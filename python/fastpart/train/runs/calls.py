"""The arguments of the call that trains, which are kept with the training so that it can go on."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from ...core.calls import Boundary
from ..plugged.objects import PLUGGED

NOT_KEPT = frozenset(
    {"source", "out", "resume", "overwrite", "model", "progress", "on_epoch", "callbacks", "trace", *PLUGGED}
)
"""Arguments of this call only: objects, and those that :meth:`.TrainedModel.resume` sets itself."""

_CALL: ContextVar[Mapping[str, Any]] = ContextVar("fastpart.train.call")

Function = TypeVar("Function", bound=Callable[..., Any])


def recorded(function: Function) -> Function:
    """Decorate a training method, so that :func:`arguments` returns what the user gave."""

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        token = _CALL.set(given)
        try:
            with Boundary(call, given):
                return function(*args, **given)
        finally:
            _CALL.reset(token)

    return cast(Function, call)


def arguments() -> dict[str, Any]:
    """Return the arguments of the training under way that a file can hold."""
    return {name: _plain(value) for name, value in _CALL.get({}).items() if name not in NOT_KEPT}


def _plain(value: Any) -> Any:
    """Return a value that JSON has: the text of a path, and Python's numbers for those of numpy."""
    if isinstance(value, os.PathLike):
        return os.path.abspath(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value.tolist() if hasattr(value, "tolist") else value
