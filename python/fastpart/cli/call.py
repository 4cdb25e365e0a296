"""What a command line gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .signatures import read


@dataclass(frozen=True)
class Call:
    """The name of a command, and the values of what was given, by name."""

    name: str
    values: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        """Return a value, or None if it was not given."""
        return self.values.get(name)

    def of(self, function: str, *but: str) -> dict[str, Any]:
        """Return what was given of the parameters of a function, but for some."""
        return {
            name: self.values[name]
            for name in read(function).options
            if name in self.values and name not in but
        }
