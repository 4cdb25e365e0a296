"""The command line: ``fastpart VERB ...``. An error is one line on stderr. ``--debug`` adds its traceback.

Exit codes: 0 for a complete result, 2 for a wrong command line, 130 for Ctrl-C, 1 for every other error.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Sequence

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from ..core.notes import log
from ..core.parameters import meant, shown
from ..errors import FastpartError, GraphWarning, ParameterError, marked
from .app import STANDARD_INPUT, make_app
from .config import expanded
from .verbs import algorithms_with
from .wording import Wording

__all__ = ["main"]

_RENAMED = {"cache": "conversions"}
"""Commands by their former names."""

_PACKAGE = __name__.partition(".")[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    wording = Wording(arguments)
    try:
        arguments = expanded(arguments)
        wording, debug = Wording(arguments), "--debug" in arguments
        _log_to_stderr(wording, quiet=not {"-q", "--quiet"}.isdisjoint(arguments))
        _run(arguments, wording)
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        return _refuse(error, 130, debug, _texts(error, wording, "interrupted"))
    except BrokenPipeError:
        # The reader of our output has closed it. Python flushes what is still buffered at exit, which must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ParameterError, TypeError) as error:
        return _refuse(error, 2, debug, _texts(error, wording))
    except OSError as error:
        return _refuse(error, 1, debug, _texts(error, wording))
    except Exception as error:
        if isinstance(error, FastpartError | MemoryError) or _lacks_package(error):
            return _refuse(error, 1, debug, _texts(error, wording))
        text = f"internal error: {type(error).__name__}: {error} (--debug shows where)"
        return _refuse(error, 1, debug, _texts(error, wording, text))
    return 0


def _lacks_package(error: Exception) -> bool:
    """Return whether an optional package is not installed. A missing module of our own is a defect."""
    return isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] != _PACKAGE


def _run(words: list[str], wording: Wording) -> None:
    app = make_app(words)
    try:
        for word in words:
            if word.startswith("--") and "_" in word.partition("=")[0]:  # cyclopts accepts _ for -
                raise ParameterError(f"unknown option {word!r}{meant(word, [word.replace('_', '-')])}")
        words = [STANDARD_INPUT if word == "-" else word for word in words]  # cyclopts takes - for an option
        command, given, _ = app.parse_args(words, print_error=False, exit_on_error=False)
    except CycloptsError as error:
        called = " ".join(["fastpart", *(error.command_chain or ())])
        raise ParameterError(f"{_reason(error, words, wording)} (see `{called} --help`)") from error
    if command == app.help_print and {"--help", "-h"}.isdisjoint(words):
        _run([*words, "--help"], wording)  # the words name a family of commands, or nothing
        return
    command(*given.args, **given.kwargs)


def _commands(app: App) -> list[str]:
    """Return the names of the commands of an application."""
    return [name for name in app if not name.startswith("-")]


def _reason(error: CycloptsError, words: list[str], wording: Wording) -> str:
    """Return the message for an error of cyclopts."""
    if isinstance(error.__cause__, ParameterError):
        return marked(error.__cause__)
    if isinstance(error, CoercionError) and error.argument and error.token:
        word, known = error.token.value, [*(error.argument.get_choices() or ("true", "false"))]
        return f"{error.token.keyword}: unknown value {word!r}. Valid values are {', '.join(known)}{meant(word, known)}"
    if isinstance(error, UnknownOptionError):
        word = error.token.keyword or error.token.value
        takers = algorithms_with(word) if tuple(error.command_chain or ())[:1] == ("partition",) else []
        if takers:
            return f"{word} is an option of {', '.join(takers)}. Name one of them with --algorithm"
        return wording.unknown(word)
    if isinstance(error, UnknownCommandError) and error.app and error.unused_tokens:
        word, known = error.unused_tokens[0], _commands(error.app)
        close = f". Did you mean {_RENAMED[word]!r}?" if word in _RENAMED else meant(word, known)
        return f"unknown command {word!r}. The commands are {', '.join(known)}{close}"
    if isinstance(error, MissingArgumentError) and error.argument:
        # The one that is missing may be there under another name.
        given = (word.partition("=")[0] for word in words if word.startswith("-") and word != STANDARD_INPUT)
        unknown = next((word for word in given if wording.means(word, error.argument.name)), None)
        if unknown is not None and not error.keyword:
            return wording.unknown(unknown)
        return f"{error.keyword} needs a value" if error.keyword else f"{error.argument.name} is missing"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"unknown argument {error.unused_tokens[0]!r}"
    return str(error)


def _texts(error: BaseException, wording: Wording, reason: str = "") -> list[str]:
    """Return an error, and its notes: where a result is kept."""
    reason = reason or (_os_error_text(error) if isinstance(error, OSError) else marked(error))
    return [*map(wording.of_shell, (reason or type(error).__name__, *getattr(error, "__notes__", ())))]


def _refuse(error: BaseException, code: int, debug: bool, texts: list[str]) -> int:
    """Print an error."""
    if debug:
        traceback.print_exc()
    print(f"fastpart: error: {' '.join('. '.join(texts).split(chr(10)))}", file=sys.stderr)
    return code


def _os_error_text(error: OSError) -> str:
    if isinstance(error, FastpartError) or error.filename is None:
        return marked(error)
    return f"{shown(error.filename)}: {getattr(error, 'marked', error.strerror)}"


class _InShell(logging.Formatter):
    """Notes in the words of the shell."""

    def __init__(self, wording: Wording) -> None:
        super().__init__()
        self._wording = wording

    def format(self, record: logging.LogRecord) -> str:
        text = getattr(record, "marked", None) or super().format(record)
        return f"fastpart: note: {self._wording.of_shell(text)}"


def _log_to_stderr(wording: Wording, quiet: bool) -> None:
    """Print warnings and notes on stderr, one line each, and names of files that are not UTF-8 with escapes."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")

    def warn(message: Warning | str, *_: object, **__: object) -> None:
        text = marked(message) if isinstance(message, Warning) else message
        print(f"fastpart: warning: {wording.of_shell(text)}", file=sys.stderr)

    warnings.showwarning = warn
    if quiet:
        warnings.simplefilter("ignore", GraphWarning)
    log.handlers.clear()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_InShell(wording))
    log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
