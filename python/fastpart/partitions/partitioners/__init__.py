"""The partitioners, one function each. All have the same first and last parameters."""

from __future__ import annotations

from .builtin import *  # noqa: F403
from .builtin import ALGORITHMS, PARTITIONERS
from .builtin import __all__ as _BUILTIN
from .choice import VARIANTS, items_of, needs_splits
from .choosing import partition
from .custom import custom

__all__ = [
    "ALGORITHMS",
    "PARTITIONERS",
    "VARIANTS",
    "custom",
    "items_of",
    "needs_splits",
    "partition",
    *_BUILTIN,
]
