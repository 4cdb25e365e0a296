"""Reports of a process to its :class:`~fastpart.runtime.watch.Supervisor`, as lines of JSON in a pipe."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import sys
import sysconfig
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

from ..core.system import die_with
from ..errors import FastpartError

PIPE, PARENT, RUN = "FASTPART_REPORTS", "FASTPART_SUPERVISOR", "FASTPART_RUN"
"""Environment variables: descriptor of the pipe, process id of the supervisor, and name of the run."""

READY, DONE, FAILED, WARNING = "ready", "done", "failed", "warning"
"""Messages for the supervisor itself."""


_ABOUT_CODE = (DeprecationWarning, PendingDeprecationWarning, FutureWarning, ImportWarning, ResourceWarning)
"""Warnings for those who write code, not for those who run it."""

WAITS = "WAITS_FOR_PEERS"
"""Global name of the modules where processes wait for others, beside those of ``torch.distributed``. A module says it
of itself, so that it may be renamed. Work that is awaited later waits in our own file.
"""


class Reports:
    """The child's end of the pipe. Without a supervisor, reports are dropped."""

    def __init__(self) -> None:
        self._pipe: int | None = None
        self._sending = threading.Lock()
        if PIPE in os.environ:
            self._pipe = int(os.environ.pop(PIPE))
            os.set_inheritable(self._pipe, False)
            die_with(int(os.environ[PARENT]))

    def ready(self) -> None:
        """Report that the process has started."""
        self.send(READY, True)

    def done(self) -> None:
        """Report that the work is done. From here on the exit code does not matter."""
        self.send(DONE, True)

    def failed(self, error: BaseException) -> None:
        """Report when this process failed and whether through others, so that the supervisor can find the cause."""
        with contextlib.suppress(OSError):
            self.send(FAILED, [blames_peers(error), time.monotonic()])

    def send(self, kind: str, content: Any) -> None:
        """Send a message."""
        if self._pipe is None:
            return
        line = memoryview(json.dumps([kind, content]).encode() + b"\n")
        with self._sending:
            while line:
                line = line[os.write(self._pipe, line) :]

    def warn(
        self, message: Warning | str, category: type[Warning], filename: str, lineno: int, *_: Any, **__: Any
    ) -> None:
        """Report a warning. It takes the place of ``warnings.showwarning``."""
        with contextlib.suppress(OSError):
            self.send(WARNING, f"{category.__name__}: {message} ({filename}, line {lineno})")


def run(main: Callable[[Reports], None]) -> NoReturn:
    """Do the work of this process. An error is one line on stderr and exit code 1.

    Exit handlers are skipped: those of libraries would wait for peers that are gone.
    """
    code, reports = 1, Reports()
    faulthandler.register(signal.SIGUSR1, all_threads=False)  # the supervisor asks where a process hangs
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    _report_warnings(reports)
    try:
        main(reports)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException as error:
        reports.failed(error)
        print(describe(error), file=sys.stderr)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _report_warnings(reports: Reports) -> None:
    """Report the warnings from here on, but for those about the code of libraries."""
    warnings.resetwarnings()
    for category in _ABOUT_CODE:
        warnings.simplefilter("ignore", category)
    warnings.showwarning = reports.warn


def blames_peers(error: BaseException) -> bool:
    """Return whether the process failed while it waited for others."""
    places = [frame.f_globals for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(
        WAITS in place or place.get("__name__", "").startswith("torch.distributed") for place in places
    )


def describe(error: BaseException) -> str:
    """Return an error as one paragraph, with its place in the user's code, if there is one."""
    if isinstance(error, FastpartError | OSError):
        return str(error)
    text = f"{type(error).__name__}: {error}".partition("\nStack trace:")[0]  # DGL appends a C++ trace
    frames = traceback.extract_tb(error.__traceback__)
    places = [frame for frame in frames if not _is_library(frame.filename)]
    if places:
        text += f" (in {places[-1].name}, {places[-1].filename}, line {places[-1].lineno})"
    return text


def _is_library(filename: str) -> bool:
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    theirs = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "<")
    return filename.startswith((ours, *theirs))
