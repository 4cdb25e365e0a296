"""Write ``cli/options.json``, the options of the command line, from the public functions: ``make stubs``.

Signatures and docstrings are those that users see in Python. Importing the functions takes half a second and numpy, for
which ``--help`` should not wait.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Literal, get_origin

from fastpart import _core
from fastpart.cli.call import FUNCTIONS, in_shell
from fastpart.core.calls import full_signature
from fastpart.core.option_groups import entries_of, split
from fastpart.partitions import documents
from fastpart.partitions.loader_options import Fanouts
from fastpart.train.registry import METHODS

READ = {
    "open_graph": "graphs.opening",
    "partition": "partitions.partitioners.choosing",
    "info": "measures.info",
    "doctor": "measures.doctor",
    "convert": "graphs.convert",
    "ingest": "graphs.ingest",
    "split_edges": "graphs.splits",
    "evaluate": "measures.evaluate",
    "cluster": "partitions.clustering",
    "order": "partitions.order",
    "compare": "measures.compare",
    "open_partition": "store",
    "restore": "store",
    "upgrade": "store",
    "verify": "store",
    "work": "machines.tasks",
    "Options": "core.options",
    "generate.ba": "generate",
    "generate.grid": "generate",
    "generate.planted": "generate",
    "generate.rmat": "generate",
    "generate.typed": "generate",
    "export.dgl": "export",
    "export.glt": "export",
    "export.pyg": "export",
    "export.text": "export",
    "export.wholegraph": "export",
    "train.compare": "train.comparing",
    "train.predict": "train.predictions",
    **{f"train.{name}": f"train.methods.{name}" for name in METHODS},
}
"""The module of each function, and of the class whose docs some refer to."""

_BY_ITSELF = "saved with graph=, "
"""A condition of options that `fastpart partition` always meets."""

METHODS_OF_RESULTS = {"save": "VertexPartition", "plan": "VertexPartition"}
"""Methods of classes that verbs call."""


@cache
def algorithms() -> dict[str, _core.Algorithm]:
    """Return the partitioners, of which the registry of the core knows all."""
    return {each.name: each for each in (*_core.algorithms(), *_core.successors())}


@cache
def function(name: str) -> Callable[..., Any]:
    """Return a function, a class or a method by the name that verbs have for it."""
    last = name.rpartition(".")[2]
    if name in METHODS_OF_RESULTS:
        return getattr(getattr(import_module("fastpart"), METHODS_OF_RESULTS[name]), name)
    return getattr(import_module(f"fastpart.{READ[name]}"), last)


def text_of(name: str) -> str:
    """Return a docstring."""
    if name in algorithms():
        return documents.document(algorithms()[name])
    known = function(name)
    return getattr(known, "full_doc", None) or inspect.getdoc(known) or ""


@cache
def documented(name: str) -> dict[str, tuple[str, str]]:
    """Return the type and the description of each parameter."""
    found, docs = {}, inspect.cleandoc(text_of(name)).replace("Attributes\n---", "Parameters\n---")
    for line, text in entries_of(split(docs)[1]):
        names, _, accepted = line.partition(" : ")
        for each in names.split(", "):
            found[each] = accepted.removesuffix(", optional"), inspect.cleandoc(text)
    return found


def described(name: str, parameter: str) -> tuple[str, str]:
    """Return type and description of a parameter. "As in :func:`other`" is followed to the other function."""
    own = documented(name).get(parameter, ("", ""))
    if reference := re.match(r"As (?:in )?:\w+:`~?(?:[\w.]*\.)?(\w+)`", own[1]):
        beside = f"{name.rpartition('.')[0]}.{reference[1]}"
        known = [other for other in READ if other.rpartition(".")[2] == reference[1]]
        other = described(beside if beside in READ else (known or [reference[1]])[0], parameter)
        return other if other[1] else own
    return own


def sentence(doc: str, with_default: bool = False) -> str:
    """Return the first sentence without markup, and on request the sentence about the default."""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"\1", " ".join(doc.split())).replace("``", "")
    first, *rest = re.split(r"(?<=\.)\s+(?=[A-Z(\"])", text)
    return " ".join([first, *(each for each in rest if with_default and each.startswith("Default"))])


def spelled_out(name: str, annotation: Any) -> str:
    """Return an annotation as text, with the words of ``Literal`` types instead of their names."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = text.replace(
        inspect.formatannotation(Fanouts), "Fanouts"
    )  # the shell has a form of its own for them
    names = {} if name in algorithms() else getattr(inspect.unwrap(function(name)), "__globals__", {})

    def words(found: re.Match[str]) -> str:
        known = names.get(found[0])
        return inspect.formatannotation(known) if get_origin(known) is Literal else found[0]

    return re.sub(r"\b[A-Z]\w+\b(?!\[)", words, text)


def options(name: str) -> list[dict[str, Any]]:
    """Return the options of a function."""
    known = (
        documents.signature(algorithms()[name]) if name in algorithms() else full_signature(function(name))
    )
    found = []
    for each in known.parameters.values():
        accepted, doc = described(name, each.name)
        option = {"name": each.name, "annotation": spelled_out(name, each.annotation)}
        if each.default is not inspect.Parameter.empty:
            option["default"] = each.default
        text = sentence(doc, each.default is None).replace(_BY_ITSELF, "saved with ")
        found.append(option | {"type": accepted, "doc": in_shell(text)})
    return found


def text() -> str:
    """Return the text of the file, with one line for each option."""
    functions = []
    for name in sorted({*READ, *METHODS_OF_RESULTS, *algorithms()} - {"Options"}):
        lines = ",\n".join(json.dumps(option, ensure_ascii=False) for option in options(name))
        head = json.dumps(sentence(text_of(name).partition("\n\n")[0]), ensure_ascii=False)
        functions.append(f'{json.dumps(name)}: {{"summary": {head}, "options": [\n{lines}\n]}}')
    return "{\n" + ",\n".join(functions) + "\n}\n"


if __name__ == "__main__":
    FUNCTIONS.write_text(text(), encoding="utf-8")
