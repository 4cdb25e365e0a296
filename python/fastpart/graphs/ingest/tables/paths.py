"""Paths, globs and URLs of tables, and what they say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote

URL = re.compile(r"^(s3|s3a|gs|gcs|az|azure|abfs|abfss|adl|hf|https?|file)://")
"""What is read from an object store or the web."""

WEB = ("hf://", "http://", "https://")
"""Places whose folders cannot be listed."""

MAGIC = re.compile(r"[*?\[]")
"""What makes a path a glob."""


@dataclass(frozen=True)
class Found:
    """A file, or the folder of a Delta or Iceberg table, and what identifies it."""

    path: str
    bytes: int
    mark: str
    """The time of its last change, or its ETag. Empty for a table of snapshots, whose version says more."""
    table: str | None = None
    """Kind "delta" or "iceberg" for the folder of such a table."""


def hidden(name: str) -> bool:
    """Whether a name is one of those that Spark and others hide: ``_SUCCESS``, ``.part.crc``."""
    return name.startswith((".", "_"))


def glob_pattern(pattern: str, literal: int = 0) -> re.Pattern[str]:
    """Return a regular expression for a glob over the keys of an object store. ``*`` stays within a folder.

    The first ``literal`` characters have no special meaning.
    """
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\])", pattern[literal:])
    return re.compile(re.escape(pattern[:literal]) + "".join(map(_part, parts)) + r"\Z", re.DOTALL)


def _part(part: str) -> str:
    plain: dict[str, str] = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if part in plain:
        return plain[part]
    if len(part) > 2 and part[0] == "[" and part[-1] == "]":
        inner = part[1:-1].replace("\\", r"\\")
        return f"[^{inner[1:]}]" if inner[0] == "!" else f"[{inner}]"
    return re.escape(part)


def partitions_of(path: str) -> dict[str, str | None]:
    """Return what the folders of a path say, as ``day=1``: columns that all rows of the file share."""
    pairs: Sequence[tuple[str, str]] = re.findall(r"(?:^|/)([^/=]+)=([^/]*)(?=/)", path)
    return {
        unquote(name): None if value == "__HIVE_DEFAULT_PARTITION__" else unquote(value)
        for name, value in pairs
    }
