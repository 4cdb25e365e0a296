"""Parameters of the public functions as options of a command line, and the values that a call of the shell has.

The shell spells parameters and values in its own way.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .. import _core
from ..core.notes import Bar
from ..core.options import RunOptions, run_options

_VALUE = r"""True|False|"[^"]*"|'[^']*'|\[[^\]]*\]|\([^()]*\)|\{[^}]*\}|(?:[-\w]|\.(?=\w))*"""

_GIVEN = re.compile(rf"(?<=[\s(])([a-z][a-z_]+)=({_VALUE})(?![.,-]?\w)")
"""A parameter with a value, or with none, in a text without marks: ``seed=3``, ``features=``."""

_EXAMPLE = re.compile(r"\bas (\[[^\]]*\]|\{[^}]*\})")

_WORDS = {
    "balance_on=[]": "--balance-on vertices",
    "weights=False": "--weights no",
    'comments=""': "--comments ''",
}
"""Values that the shell has words for."""


def flag(name: str) -> str:
    """Return the option for a parameter."""
    return "-k" if name == "k" else f"--{name.replace('_', '-')}"


def option(given: str) -> str:
    """Return ``--name value`` for ``name=value``, with lists as the shell takes them."""
    if given in _WORDS:
        return _WORDS[given]
    name, _, value = given.partition("=")
    if value in ("True", "False"):
        return flag(name if value == "True" else f"no_{name}")
    return f"{flag(name)} {_value(value)}".rstrip()


def in_shell(text: str, known: Container[str] | None = None) -> str:
    """Return a text without marks, such as a docstring, with :func:`option` for ``name=value``.

    Given names that are ``known``, the others stay: they may be columns, or folders as ``year=2020``.
    """
    text = _GIVEN.sub(
        lambda given: option(given[0]) if known is None or given[1] in known else given[0], text
    )
    return _EXAMPLE.sub(lambda example: f"as {_value(example[1])}", text)


def _value(text: str) -> str:
    plain = re.sub(r"""["']""", "", text.strip("[](){}"))
    if text.startswith("{"):
        plain = re.sub(r"\[([^]]*)\]?", lambda found: found[1].replace(", ", ":"), plain)
    return plain.replace(", ", ",").replace(": ", "=")


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
