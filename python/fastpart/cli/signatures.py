"""Parameters of the public functions as options of a command line.

``options.json`` holds them, so that help and typos wait for no import of numpy, Polars or torch. ``make stubs`` writes
it from the functions: see ``tools/command_line.py``.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .. import _core
from .spelling import flag

REQUIRED = inspect.Parameter.empty

FUNCTIONS = Path(__file__).with_name("options.json")
"""The first sentence of each function's docs, and its options, by its name."""


@dataclass(frozen=True)
class Option:
    """A parameter of a function."""

    name: str
    annotation: str
    default: Any = REQUIRED
    type: str = ""
    """The type of a parameter, as numpydoc documents it."""
    doc: str = ""

    @property
    def flag(self) -> str:
        """The spelling on the command line."""
        return flag(self.name)

    @property
    def words(self) -> set[str]:
        """The types in the annotation."""
        return set(re.findall(r"\w+", re.sub(r"Literal\[[^]]*\]", "str", self.annotation)))

    @property
    def choices(self) -> tuple[str, ...]:
        """The valid words, if the option takes only these."""
        if literal := re.fullmatch(r"(?:\w+\[)?Literal\[([^]]*)\]\]?(?: \| None)?", self.annotation):
            return tuple(ast.literal_eval(f"({literal[1]},)"))
        return self._named if self.words <= {"str", "None", "Sequence"} else ()

    @property
    def _named(self) -> tuple[str, ...]:
        """The words that the docs name as values."""
        return tuple(re.findall(r'"([^"]*)"', self.type))

    @property
    def listed(self) -> bool:
        """Whether several values may be given, with commas between them."""
        return not {"Sequence", "Iterable"}.isdisjoint(self.words)

    @property
    def is_file(self) -> bool:
        """Whether the value names a file."""
        return (
            not {"StrPath", "PartitionSource", "PathLike", "Any", "ArrayLike"}.isdisjoint(self.words)
            and "Callable" not in self.words
        )

    @property
    def is_time(self) -> bool:
        """Whether the value is a number of seconds."""
        return "float" in self.words and self.doc.startswith("Seconds ")

    @property
    def metavar(self) -> str:
        """The placeholder of the value in help."""
        if self.name == "out":
            return "OUT"
        if self.is_time:
            return "SECONDS|5m|1h"
        if "Fanouts" in self.words:
            return "INT,...|NAME=INT:INT,..."
        if {"Mapping", "Any"} <= self.words:
            return "INT|KIND|KIND=INT,..." if "int" in self.words else "FILE|KIND=TEXT,..."
        if "Mapping" in self.words:
            return "INT|NAME=INT,..." if "int" in self.words else "NAME=FLOAT,..."
        if "memory" in self.name or "in bytes or as text such as" in self.doc:
            return "SIZE"
        number = "FLOAT" if "float" in self.words else "INT" if "int" in self.words else ""
        text = "FILE" if self.is_file else "NAME" if self.listed else "TEXT"
        if number == "FLOAT" and "with its unit" in self.doc:
            number = "FLOAT|SIZE"
        words = "|".join(filter(None, [number, *(self.choices or self._named)])) or text
        words = words if len(words) < 60 else "NAME"
        return f"{words},..." if self.listed else words


@cache
def _functions() -> Mapping[str, Any]:
    known: dict[str, Any] = json.loads(FUNCTIONS.read_bytes())
    return known


@cache
def read(name: str) -> dict[str, Option]:
    """Return the parameters of a public function, or of an algorithm, by name."""
    options = {}
    for each in _functions()[name]["options"]:
        if isinstance(default := each.get("default", REQUIRED), list):
            each["default"] = tuple(default)
        options[each["name"]] = Option(**each)
    return options


def summary(name: str) -> str:
    """Return the first sentence of a docstring."""
    text: str = _functions()[name]["summary"]
    return text


@cache
def algorithms() -> dict[str, _core.Algorithm]:
    """Return the registry of the core."""
    return {algorithm.name: algorithm for algorithm in _core.algorithms()}
