"""Output and warnings of workers, shown to the user on stderr with the name of the worker."""

from __future__ import annotations

import sys
from contextlib import suppress

_LONGEST = 1 << 16
"""Bytes of a line that are shown at a time."""


def show(name: str, text: str) -> None:
    """Show a line of a worker. Results go to stdout, so nothing of workers may come between."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):  # the user has closed it
            print(f"{name}: {text}", file=sys.stderr, flush=True)


class Output:
    """The stdout of a worker, shown line by line."""

    def __init__(self, name: str) -> None:
        self._name, self._rest = name, b""

    def add(self, data: bytes) -> None:
        """Show the lines that are complete."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            show(self._name, line.decode(errors="replace"))
        if len(self._rest) > _LONGEST:
            self.end()

    def end(self) -> None:
        """Show a last line without an end."""
        if self._rest:
            show(self._name, self._rest.decode(errors="replace"))
        self._rest = b""
