"""What a command line gives."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..options import RunOptions, run_options
from ..progress import Bar
from .signatures import read


@dataclass(frozen=True)
class Call:
    """The name of a command, and the values of what was given, by name."""

    name: str
    values: dict[str, Any]
    running: dict[str, Any]
    """What was given of :class:`fastpart.Options`; it holds for all functions that the command calls."""

    def __getitem__(self, name: str) -> Any:
        """Return a value, or None if it was not given."""
        return self.values.get(name)

    def of(self, function: str, *but: str) -> dict[str, Any]:
        """Return what was given of the parameters of a function, but for some."""
        return {
            name: value for name, value in self.values.items() if name in read(function) and name not in but
        }

    @contextmanager
    def run(self) -> Iterator[RunOptions]:
        """Give the options for work that is no function of ours, with a bar of its own."""
        bar = Bar() if self.running["progress"] else None
        try:
            yield run_options(**{**self.running, "progress": bar})
        finally:
            if bar is not None:
                bar.close()
