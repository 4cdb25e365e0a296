"""Names that become paths: one rule holds where a name is given, and where a file of ours is read."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}"

Name = Annotated[str, msgspec.Meta(pattern=rf"^{PATTERN}\Z")]
"""The name of a type or a relation."""

PathBelow = Annotated[str, msgspec.Meta(pattern=r"^(?:(?!\.\.(?:/|\Z))[^/\x00\ud800-\udfff]++/?+)++\Z")]
"""A path below the folder of the list that has it."""

RULE = "Use up to 64 letters, digits, '_', '-' and '.', and begin with none of '-' and '.'"


def is_name(text: str) -> bool:
    """Return whether a text may be the name of a type or a relation."""
    return re.fullmatch(PATTERN, text) is not None
