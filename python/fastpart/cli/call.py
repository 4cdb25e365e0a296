"""The values of a command line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..core.notes import Bar
from ..core.options import RunOptions, run_options
from .signatures import read


@dataclass(frozen=True)
class Call:
    """The name of a command, and the arguments and options that the user gave, by name."""

    name: str
    values: dict[str, Any]
    running: dict[str, Any]
    """The given :class:`fastpart.Options`. They apply to all functions that the command calls."""

    def __getitem__(self, name: str) -> Any:
        """Return a value, or None if it was not given."""
        return self.values.get(name)

    def of(self, function: str, *but: str) -> dict[str, Any]:
        """Return the given parameters of a function, except ``but``."""
        return {
            name: value for name, value in self.values.items() if name in read(function) and name not in but
        }

    def tell(self, facts: Mapping[str, Any], text: object) -> None:
        """Print facts as JSON if the user wants that, and else a text, if any."""
        if self["json"]:
            print(json.dumps(facts))
        elif not self["quiet"]:
            print(text)

    @contextmanager
    def run(self) -> Iterator[RunOptions]:
        """Yield the run options for work outside the public functions, with a progress bar."""
        bar = Bar() if self.running["progress"] else None
        try:
            yield run_options(**{**self.running, "progress": bar})
        finally:
            if bar is not None:
                bar.close()
