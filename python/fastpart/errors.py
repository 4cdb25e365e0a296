"""The exceptions of fastpart.

Errors of the operating system are the matching builtins (``FileNotFoundError``, ``PermissionError``, ``OSError``) with
the path. Wrong types are ``TypeError``. Every other refusal is a :class:`FastpartError`. Its text says what is wrong,
where, and the remedy.

Texts are written for Python. What another front spells differently is marked where it is written: parameters by
:func:`arg`, calls by :func:`code`. ``str(error)`` has no marks, :func:`marked` returns them. :func:`spelled` replaces
them.
"""

import re
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = [
    "CapacityError",
    "CapacityWarning",
    "ClusterError",
    "EdgeFileChangedError",
    "FastpartError",
    "GraphFormatError",
    "GraphWarning",
    "InternalError",
    "MemoryBudgetError",
    "ParameterError",
    "TrainingError",
]


def __dir__() -> list[str]:
    return __all__


_BEGIN, _OR, _END = "\x0e", "\x1f", "\x0f"
"""What surrounds a mark, and stands between its texts. No text has such characters: names and values are escaped."""

_MARK = re.compile(f"{_BEGIN}([^{_OR}{_END}]*)(?:{_OR}([^{_END}]*))?{_END}")

_PARAMETER = re.compile(r"(\w+(?:, \w+)*)((?:\[\d+\])?: )")
"""How the text of a refused parameter begins: ``k: ...``, ``balance_on[1]: ...`` or ``val, test: ...``."""

Error = TypeVar("Error", bound=BaseException)


def arg(name: str, *value: object) -> str:
    """Return a parameter for the text of an error, with its value if there is one: ``seed=3``, or ``features=``.

    A name that holds ``=`` is code, as it is.
    """
    return f"{_BEGIN}{name}{'' if '=' in name else '='}{_code(*value) if value else ''}{_END}"


def _code(value: object) -> str:
    if isinstance(value, list | tuple):
        inside = ", ".join(map(_code, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    return f'"{value}"' if isinstance(value, str) else "..." if value is ... else repr(value)


def code(python: str, shell: str) -> str:
    """Return Python code for the text of an error, beside what the shell has instead."""
    return f"{_BEGIN}{python}{_OR}{shell}{_END}"


def spelled(text: str, other: Callable[[str, str | None], str], rest: Callable[[str], str] = str) -> str:
    """Return a text with ``other(python, shell)`` in place of each mark, and ``rest(text)`` of what is between."""
    pieces = _MARK.split(text)
    marks = [other(python, shell) for python, shell in zip(pieces[1::3], pieces[2::3], strict=True)]
    return "".join(rest(between) + mark for between, mark in zip(pieces[::3], [*marks, ""], strict=True))


def plain(text: Any) -> Any:
    """Return a text as Python says it, without marks. What is no text stays."""
    return spelled(text, lambda python, _: python) if isinstance(text, str) and _BEGIN in text else text


def marked(error: BaseException) -> str:
    """Return the text of an error with its marks."""
    text: str = getattr(error, "_marked", "") or str(error)
    return text


def refusal(kind: Callable[..., Error], *args: Any) -> Error:
    """Return an error or a warning that is not ours, such as ``TypeError``, of a text that may have marks."""
    error = kind(*map(plain, args))
    error.__dict__["_marked"] = next((each for each in args if isinstance(each, str)), "")
    return error


def named(text: str) -> tuple[list[str], str]:
    """Return the parameters that a text begins with, and what follows them. There may be none."""
    found = _PARAMETER.match(text)
    return (found[1].split(", "), text[found.end(1) :]) if found else ([], text)


class FastpartError(ValueError):
    """The base of all refusals."""

    _marked: str = ""

    def __init__(self, *args: Any) -> None:
        super().__init__(*map(plain, args))
        self._marked = args[0] if args and isinstance(args[0], str) else ""

    @property
    def parameter(self) -> str | None:
        """The parameter that is refused, the first one if there are several."""
        return next(iter(named(str(self))[0]), None)

    @property
    def reason(self) -> str:
        """What is wrong: the first sentence, without the name of the parameter."""
        return self._sentences()[0]

    @property
    def remedy(self) -> str | None:
        """What to do: the other sentences."""
        return self._sentences()[2] or None

    def _sentences(self) -> tuple[str, str, str]:
        text = str(self)
        found = _PARAMETER.match(text)
        return text[found.end() if found else 0 :].partition(". ")


class GraphFormatError(FastpartError):
    """A file or an array is not a valid graph or partition."""


class _NameFoundError(GraphFormatError):
    """Text has a name among its numbers. It is read again as names where the user named its columns."""


class ParameterError(FastpartError):
    """A parameter has an invalid value."""


class CapacityError(FastpartError):
    """The input is too large for the types, or no assignment can keep the caps."""


class MemoryBudgetError(FastpartError, MemoryError):
    """The work needs more memory than allowed. This is raised before anything is allocated."""


class EdgeFileChangedError(FastpartError, OSError):
    """The edge file changed while it was read. No result was written."""


class TrainingError(FastpartError, RuntimeError):
    """A training process ended before its work was done. The other processes were stopped and their files removed."""


class ClusterError(FastpartError, RuntimeError):
    """A cluster lost too many processes or nodes. The same call goes on from what lies in the shared folder."""


class InternalError(RuntimeError):
    """A defect of fastpart itself."""


class CapacityWarning(UserWarning):
    """The partition is valid, but has empty parts, or caps that had to be raised."""


class GraphWarning(UserWarning):
    """A fact about a graph was assumed because it was not given. The text says how to give it."""


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the user's line that called into the package. The text may have marks."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame, level = frame.f_back, level + 1
    warnings.warn(refusal(category, text), stacklevel=level)
