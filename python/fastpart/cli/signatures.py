"""Parameters of the public functions as options of a command line."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import dataclass
from functools import cache
from typing import Any

from .sources import described, signature_of, spelled_out, text_of
from .spelling import flag, in_shell

REQUIRED = inspect.Parameter.empty


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
def read(name: str) -> dict[str, Option]:
    """Return the parameters of a public function, or of an algorithm, by name."""
    options = {}
    for each in signature_of(name).parameters.values():
        accepted, doc = described(name, each.name)
        annotation = (
            each.annotation if isinstance(each.annotation, str) else inspect.formatannotation(each.annotation)
        )
        text = in_shell(_sentence(doc, each.default is None))
        options[each.name] = Option(each.name, spelled_out(name, annotation), each.default, accepted, text)
    return options


def summary(name: str) -> str:
    """Return the first sentence of a docstring."""
    return _sentence(text_of(name).partition("\n\n")[0])


def _sentence(doc: str, with_default: bool = False) -> str:
    """Return the first sentence without markup, and on request the sentence about the default."""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", " ".join(doc.split())).replace("``", "")
    first, *rest = re.split(r"(?<=\.)\s+(?=[A-Z(\"])", text)
    return " ".join([first, *(each for each in rest if with_default and each.startswith("Default"))])
