"""Errors of parsers on damaged files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
