"""Errors of files that name the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .errors import FastpartError, GraphFormatError
from .frames import pl
from .parameters import shown


@contextmanager
def damaged(file: Path, what: str) -> Iterator[None]:
    """Turn any exception of a parser into a :class:`GraphFormatError` that names the file."""
    try:
        yield
    except (OSError, FastpartError, MemoryError):
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        reason = str(error).strip().split("\n", 1)[0] or type(error).__name__
        raise GraphFormatError(f"{shown(file)}: {what} ({reason})") from None


def json_object(file: Path, text: str | bytes) -> dict[str, Any]:
    """Return the JSON object of a file."""
    with damaged(file, "not JSON"):
        content = json.loads(text)
    if not isinstance(content, dict):
        raise GraphFormatError(f"{shown(file)}: expected a JSON object")
    return content


@contextmanager
def named(file: str | Path) -> Iterator[None]:
    """Name the file or folder in errors of the system. A failed write does not."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None
