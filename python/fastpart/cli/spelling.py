"""How the shell spells parameters and values."""

from __future__ import annotations

import re
from collections.abc import Container

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
