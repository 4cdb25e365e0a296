"""Which two columns of a table hold the ends of its edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ..core.notes import log
from ..core.parameters import one_line
from ..errors import FastpartError, ParameterError, arg, refusal

Kind = Literal["integer", "string", "other"]

Pair = tuple[int | str, int | str]
"""Two columns, each by its name or by its number from 1."""

PAIRS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"), ("head", "tail"))
"""Names of both columns in tables, in small letters. Text has the same ones."""

REMEDY = f"{arg('columns', ('source', 'target'))} or {arg('columns', (1, 2))}"


def asked(columns: Any) -> Pair | None:
    """Check ``columns=``."""
    if columns is None:
        return None
    if isinstance(columns, str | bytes) or not isinstance(columns, Sequence) or len(columns) != 2:
        raise ParameterError(f"columns: {columns!r:.80}. Expected two names or numbers, as in {REMEDY}")
    for each in columns:
        if isinstance(each, bool) or not isinstance(each, str | int):
            raise TypeError(f"columns: expected names or numbers, got {type(each).__name__}")
    return columns[0], columns[1]


def ends_of(
    where: str,
    columns: Sequence[tuple[str, Kind, str]],
    wanted: Pair | None,
    besides: str | None = None,
    error: type[Exception] = FastpartError,
) -> tuple[int, int]:
    """Return the places, from 0, of the columns of sources and targets. The user is told which, if there are more.

    Parameters
    ----------
    where : str
        How messages call the table.
    columns : sequence of (str, Kind, str)
        Name, kind and type of each column.
    wanted : Pair or None
        What the user asked for. Default: two columns with known names, or the only two of integers or strings.
    besides : str, optional
        A column of weights, which holds no ids.
    error : type
        Raised for a table in which nothing says which columns they are.
    """
    names = [name for name, _, _ in columns]
    if wanted is not None:
        u, v = (_place(where, names, each) for each in wanted)
        if u == v:
            raise ParameterError(f"columns: both are {names[u]!r}. Name the two that hold the ids")
        return u, v
    small = [name.strip().lower() for name in names]
    known = [(small.index(u), small.index(v)) for u, v in PAIRS if u in small and v in small]
    if len(known) == 1:
        u, v = known[0]
    else:
        possible = [
            place for place, (name, kind, _) in enumerate(columns) if kind != "other" and name != besides
        ]
        if known or len(possible) != 2:
            raise refusal(error, f"{where}: {_unsure(columns, len(known) > 1, len(possible))}")
        u, v = possible
    if len(names) > 2:
        log.info("%s: the ids are in the columns %s and %s", where, one_line(names[u]), one_line(names[v]))
    return u, v


def _place(where: str, names: Sequence[str], wanted: int | str) -> int:
    if isinstance(wanted, int) and 1 <= wanted <= len(names):
        return wanted - 1
    if isinstance(wanted, str) and wanted in names:
        return names.index(wanted)
    listed = ", ".join(one_line(name) for name in names) or "none"
    raise ParameterError(f"columns: {where} has no column {wanted!r:.80}. Its columns: {listed}")


def _unsure(columns: Sequence[tuple[str, Kind, str]], several: bool, possible: int) -> str:
    listed = ", ".join(f"{one_line(name)!r} ({dtype})" for name, _, dtype in columns) or "none"
    if several:
        return f"several pairs of columns may hold the ids. It has {listed}. Name two of them: {REMEDY}"
    if possible < 2:
        return f"expected two columns of integers or strings, got {listed}"
    return f"which columns hold the ids? It has {listed}. Name two of them: {REMEDY}"
