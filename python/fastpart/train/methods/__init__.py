"""The training methods, a preset of four choices each, in files of their names. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..trainer import ROOMS

METHODS = tuple(ROOMS)
"""Their names."""


def method(name: str) -> Callable[..., Any]:
    """Return a method."""
    function: Callable[..., Any] = getattr(import_module(f"{__name__}.{name}"), name)
    return function
