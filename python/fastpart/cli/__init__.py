"""The command line: ``fastpart VERB ...``. One line per refusal, on stderr; a traceback only with ``--debug``.

Exit codes: 0 complete result; 2 the command line is wrong; 1 everything else that is refused or fails; 130 Ctrl-C.
"""

from __future__ import annotations

import io
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Sequence

from ..errors import FastpartError, GraphWarning, ParameterError
from ..notes import log
from ..parameters import shown
from .parser import make_parser

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    try:
        options, rest = make_parser().parse_known_args(arguments)
        _speak(quiet=options.quiet)
        options.run(options, rest)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return _refuse("interrupted", 130, debug)
    except BrokenPipeError:
        # Whoever read our output has seen enough. What is still buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ParameterError, TypeError) as error:
        return _refuse(error, 2, debug)
    except OSError as error:
        return _refuse(_os_error_text(error), 1, debug)
    except (FastpartError, MemoryError, ModuleNotFoundError) as error:
        return _refuse(error, 1, debug)
    except Exception as error:
        return _refuse(f"internal error: {type(error).__name__}: {error} (--debug shows where)", 1, debug)
    return 0


def _refuse(reason: object, code: int, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    text = " ".join(str(reason).split("\n")) or type(reason).__name__
    print(f"fastpart: error: {text}", file=sys.stderr)
    return code


def _os_error_text(error: OSError) -> str:
    if isinstance(error, FastpartError) or error.filename is None:
        return str(error)
    return f"{shown(error.filename)}: {error.strerror}"


def _speak(quiet: bool) -> None:
    """Send warnings and notes to stderr, one line each; no name of a file can break the output."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")

    def warn(message: Warning | str, *_: object, **__: object) -> None:
        print(f"fastpart: warning: {message}", file=sys.stderr)

    warnings.showwarning = warn
    if quiet:
        warnings.simplefilter("ignore", GraphWarning)
    log.handlers.clear()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("fastpart: note: %(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.WARNING if quiet else logging.INFO)
