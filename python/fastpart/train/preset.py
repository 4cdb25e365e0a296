"""The decorator of the training methods: their signature, their docstring and their defaults, from what they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..core.options import with_options
from ..core.shared_parameters import with_parameters
from . import keywords
from .config import DEFAULTS
from .runs.calls import recorded
from .trainer import WITHOUT

Function = TypeVar("Function", bound=Callable[..., Any])


def preset(**defaults: Any) -> Callable[[Function], Function]:
    """Decorate a training method, which takes ``**training: Unpack[...]`` of a typed dictionary of :mod:`.keywords`.

    The dictionary describes what several methods share. What the docstring of the method says of such a parameter is
    added to it. The method gets all parameters. ``defaults`` are those of this method alone.
    """
    known = {**DEFAULTS, **keywords.DEFAULTS, **defaults}

    def decorate(function: Function) -> Function:
        without = WITHOUT[function.__name__]
        return recorded(with_options(with_parameters(function, known, without), known, without))

    return decorate
