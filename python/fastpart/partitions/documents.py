"""Signatures, docstrings and stubs of the partitioners, generated from the registry."""

from __future__ import annotations

import re
from inspect import Parameter, Signature
from typing import Any

from .. import _core
from ..core.options import NAMES, Options, entries_of

_SECTION = re.compile(r"^(Warns|See Also|Notes|Examples)\n-+$", re.MULTILINE)
"""The first section of an algorithm's own docs after those that all algorithms share."""

_TYPES = {
    "ratio": ("float", "float"),
    "number": ("float", "float"),
    "integer": ("int", "int"),
    "flag": ("bool", "bool"),
    "seed": ("int", "int"),
    "integers": ("Sequence[int]", "list of int"),
    "numbers": ("Sequence[float]", "list of float"),
    "splits": ("Any", "mapping or path of a .npz"),
    "weights": (
        "npt.ArrayLike | None",
        "array of integers or bools, shape (n,), or name of a type, optional",
    ),
    "several_weights": (
        "npt.ArrayLike | Sequence[npt.ArrayLike | str] | None",
        "array of integers or bools, shape (n,), name of a type, or a list of up to 7, optional",
    ),
    "fixed": ("npt.ArrayLike | StrPath | None", "array of integers, shape (n,), or path of a .npy, optional"),
    "degrees": ("npt.NDArray[np.uint32] | None", "numpy.ndarray, optional"),
    "chunk": ("float | int", "float or int"),
    "partition": ("Partition | npt.ArrayLike | StrPath", "VertexPartition, path or array, shape (n,)"),
    "folder": ("StrPath", "path"),
}
"""Annotation and documented type by kind."""


_DEFAULT_BOUND = (
    "\nDefault: the training vertices of the types that have any, if a typed graph lies in a graph directory. ``[]``"
    "\nleaves that out."
)

_TYPE_BOUNDS = {
    "weights": (
        '\nIn a typed graph the name of a type, as "paper", stands for its vertices, and "paper:train" for its training'
        f"\nvertices.{_DEFAULT_BOUND}"
    ),
    "several_weights": (
        '\nIn a typed graph the name of a type, as "paper", stands for its vertices, "paper:train" for its training'
        '\nvertices, "types" for all types, and "train" for the training vertices of all types. No part then has more'
        "\nthan ``balance_on_ratio`` times the mean of a type. ``bounded_types`` keeps the names."
        f"{_DEFAULT_BOUND}"
    ),
}
"""What is said of a bound in every algorithm."""

RELATION_WEIGHTS = (
    'Factors by relation of a typed graph, as ``{"cites": 2.0}``. They multiply the weights of the records, which are\n'
    "1 if there are none. A relation that is not named has the factor 1."
)


def _annotation(field: _core.Field) -> str:
    if field.kind == "number_or":
        return f"float | {words(field.words[:1])}"
    text = words(field.words) if field.kind == "choice" else _TYPES[field.kind][0]
    return f"{text} | None" if field.default is None and "None" not in text else text


def literal(value: Any) -> str:
    """Return a value as it is written in a stub."""
    return f'"{value}"' if isinstance(value, str) else repr(value)


def words(known: list[str]) -> str:
    """Return the annotation of a parameter that takes one of these words."""
    return f"Literal[{', '.join(map(literal, known))}]"


def _documented(field: _core.Field) -> str:
    if field.kind == "number_or":
        return f'float or "{field.words[0]}"'
    words = "{" + ", ".join(f'"{word}"' for word in field.words) + "}"
    text = words if field.kind == "choice" else _TYPES[field.kind][1]
    return f"{text}, optional" if field.default is None and "optional" not in text else text


def _start(algorithm: _core.Algorithm) -> _core.Field | None:
    """Return the parameter that holds the partition to begin with, if it takes one."""
    return next((field for field in algorithm.fields if field.kind == "partition"), None)


def signature(algorithm: _core.Algorithm) -> Signature:
    """Return the signature of its function. Annotations are text."""
    start = _start(algorithm)
    named: list[tuple[str, str, Any]] = [("k", "int | None", None)] if start else []
    if len(algorithm.of) > 1:
        named.append(("of", words(algorithm.of), algorithm.of[0]))
    named += [
        (field.name, _annotation(field), field.default) for field in algorithm.fields if field is not start
    ]
    if algorithm.reads_weights:
        named.append(("relation_weights", "Mapping[str, float] | None", None))
    if "vertices" in algorithm.of:
        named.append(("on_infeasible", words(["warn", "error"]), "warn"))
    if "edges" in algorithm.of:
        named.append(("out", "StrPath | None", None))
    second = (start.name, _TYPES[start.kind][0]) if start else ("k", "int")
    first = [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, annotation=annotation)
        for name, annotation in (("graph", "Any"), second)
    ]
    rest = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, annotation, default in named
    ]
    return Signature([*first, *rest, *entries_of(Options)], return_annotation=_result(algorithm))


RESULTS = {"vertices": "VertexPartition", "edges": "EdgePartition"}


def _result(algorithm: _core.Algorithm) -> str:
    return " | ".join(RESULTS[of] for of in algorithm.of)


def document(algorithm: _core.Algorithm) -> str:
    """Return the docstring of its function, in numpydoc's form."""
    text = "\n".join(line.removeprefix(" ") for line in algorithm.doc.splitlines())
    match = _SECTION.search(text)
    head, rest = (text[: match.start()], text[match.start() :]) if match else (text, "")
    both = len(algorithm.of) > 1
    weights = (
        "Weights of records, if the graph has any, multiply the cut."
        if algorithm.reads_weights
        else "Weights of records are not read: each record counts once, and a warning says so."
    )
    lines = [head.rstrip(), "", weights, "", "Parameters", "----------"]
    start = _start(algorithm)
    lines += _entry("graph", "path, array or Graph", "What :func:`open_graph` accepts.")
    if start:
        lines += _documented_entry(start)
        lines += _entry("k", "int, optional", "Number of parts. Default: that of the partition.")
    else:
        lines += _entry(
            "k",
            "int",
            "Number of parts, 1 to 2**20. More parts than there are items leave parts empty, with a warning.",
        )
    if both:
        lines += _entry("of", '{"vertices", "edges"}', "Partition the vertices or the edge records.")
    for field in algorithm.fields:
        if field is not start:
            only = f'\nOnly with ``of="{field.only}"``.' if both and field.only else ""
            lines += _documented_entry(field, only + _TYPE_BOUNDS.get(field.kind, ""))
    if algorithm.reads_weights:
        lines += _entry("relation_weights", "mapping of str to float, optional", RELATION_WEIGHTS)
    if "vertices" in algorithm.of:
        lines += _entry(
            "on_infeasible",
            '{"warn", "error"}',
            'If a cap cannot be kept, "warn" raises the cap as little as possible and issues a\n'
            ':class:`~fastpart.errors.CapacityWarning`. "error" raises a :class:`~fastpart.errors.CapacityError`.',
        )
    if "edges" in algorithm.of:
        lines += _entry(
            "out",
            "path of a .npy, optional",
            "File for the parts of the records. They are then mapped from it and need no memory.",
        )
    lines += [", ".join(NAMES), "    As in :class:`fastpart.Options`."]
    lines += ["", "Returns", "-------", _result(algorithm).replace(" | ", " or ")]
    lines += [f"    {line}" for line in _returns(algorithm)]
    lines += ["", *_RAISES, "", rest.rstrip()]
    return "\n".join(lines).rstrip() + "\n"


def _returns(algorithm: _core.Algorithm) -> list[str]:
    """Return the description of the result."""
    known = {*algorithm.of, *(word for field in algorithm.fields for word in (field.name, field.kind))}
    return [text for word, text in _RETURNS.items() if word in known]


_RETURNS = {
    "vertices": "Of vertices: ``assignment`` (int32, shape (n,), read-only, not copied), ``loads`` and ``cap``.",
    "edges": "Of records: ``assignment`` (uint8, int16 or int32 by k, shape (m,), read-only), ``loads`` and ``cap``.",
    "balance_on": "With ``balance_on`` also ``weight_loads`` and ``weight_cap``.",
    "several_weights": "With a list of b arrays these have the shapes (b, k) and (b,).",
    "splits": "Also ``weight_loads`` and ``weight_cap``, of training, validation and test vertices.",
    "volume_balance": "With ``volume_balance`` also ``volume_loads`` and ``volume_cap``.",
    "sizes": "With ``sizes`` the caps are int64 arrays with one entry per part.",
}
"""Sentences by what an algorithm deals, or by the name or the kind of a parameter."""

_RAISES = [
    "Raises",
    "------",
    "ParameterError, TypeError",
    "    An invalid parameter. The text says what is valid.",
    "CapacityError",
    '    The caps cannot be kept and ``on_infeasible="error"``, or the graph is too large for the types.',
    "MemoryBudgetError",
    "    Before anything is allocated, with the bytes needed and allowed.",
    "EdgeFileChangedError",
    "    The file changed during the run.",
    "OSError",
    "    A disk is full, or failed.",
    "KeyboardInterrupt",
    "    Within a fraction of a second of Ctrl-C.",
]


def _documented_entry(field: _core.Field, more: str = "") -> list[str]:
    doc = "\n".join(line.strip() for line in field.doc.strip().splitlines())
    return _entry(field.name, _documented(field), doc + more)


def _entry(name: str, accepted: str, doc: str) -> list[str]:
    return [f"{name} : {accepted}", *(f"    {line}" for line in doc.splitlines())]
