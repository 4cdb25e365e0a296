"""How the shell spells parameters and values that Python spells otherwise."""

from __future__ import annotations

import re
from collections.abc import Container

_VALUE = r"""True|False|"[^"]*"|'[^']*'|\[[^\]]*\]|\([^()]*\)|\{[^}]*\}|(?:[-\w]|\.(?=\w))*"""

_GIVEN = re.compile(rf"(?<=[\s(])([a-z][a-z_]+)=({_VALUE})(?![.,-]?\w)")
"""A parameter with a value, or with none: ``seed=3``, ``features=``."""

_EXAMPLE = re.compile(r"\bas (\[[^\]]*\]|\{[^}]*\})")

_PHRASES = {
    "balance_on=[]": "--balance-on vertices",
    "weights=False": "--weights no",
    'comments=""': "--comments ''",
    "saved with graph=, ": "saved with ",  # partition does so by itself
}
"""Values that the shell has words for."""


def flag(name: str) -> str:
    """Return the option for a parameter."""
    return "-k" if name == "k" else f"--{name.replace('_', '-')}"


def in_shell(text: str, known: Container[str] | None = None) -> str:
    """Return a sentence with ``--name value`` for ``name=value``, and with lists as the shell takes them.

    Given names that are ``known``, the others stay: they may be columns, or folders as ``year=2020``.
    """
    for phrase, other in _PHRASES.items():
        text = text.replace(phrase, other)
    text = _GIVEN.sub(
        lambda given: _option(*given.groups()) if known is None or given[1] in known else given[0], text
    )
    return _EXAMPLE.sub(lambda example: f"as {_value(example[1])}", text)


def _option(name: str, value: str) -> str:
    if value in ("True", "False"):
        return flag(name if value == "True" else f"no_{name}")
    return f"{flag(name)} {_value(value)}".rstrip()


def _value(text: str) -> str:
    plain = re.sub(r"""["']""", "", text.strip("[](){}"))
    return plain.replace(", ", ",").replace(": ", "=")
