"""Python code in a child process that is signalled, limited or killed, and that never outlives its test."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

PASSES = 10_000
"""Of a run that a fault hits in its middle: it takes minutes, if nothing happens."""

POLL = 0.002


class Outcome(NamedTuple):
    """How a child ended, and when (``time.monotonic``) it got its signal and ended."""

    rc: int
    out: str
    err: str
    signalled: float
    ended: float


class SignalAt(NamedTuple):
    """A signal to send once the child has printed the line ``marker``; without one, once the core is at work."""

    signal: signal.Signals
    marker: str | None = None


def run_child(code: str, *arguments: object, **how: Any) -> Outcome:
    """Run Python code with ``sys.argv[1:]``; see :func:`run_python`."""
    return run_python("-c", textwrap.dedent(code), *arguments, **how)


def run_command(*arguments: object, **how: Any) -> Outcome:
    """Run the command ``fastpart``; see :func:`run_python`."""
    return run_python("-m", "fastpart", *arguments, **how)


def run_python(
    *arguments: object,
    signal_at: SignalAt | None = None,
    ulimit: dict[int, int] | None = None,
    may_die_of: Sequence[signal.Signals] = (),
    timeout: float = 60,
    cwd: Path | None = None,
) -> Outcome:
    """Run ``python`` with arguments and return exit code, stdout, stderr and times.

    A death by any signal but ``may_die_of`` is an AssertionError with the signal's name, so is a hang. The whole
    process group of the child is killed on every way out.
    """

    def limit() -> None:
        for what, most in (ulimit or {}).items():
            resource.setrlimit(what, (most, most))

    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = subprocess.Popen(
            [sys.executable, "-W", "error", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            cwd=cwd,
            start_new_session=True,
            preexec_fn=limit,
        )
        signalled = ended = 0.0
        try:
            deadline = time.monotonic() + timeout
            if signal_at is not None:
                _wait(lambda: _reached(child, out.fileno(), signal_at.marker), deadline, err.fileno())
                signalled = time.monotonic()
                os.kill(child.pid, signal_at.signal)  # not send_signal, which might reap it
            _wait(lambda: _ended(child), deadline, err.fileno())
            ended = time.monotonic()
        finally:
            # Not reaped yet, so that the number of the group is still the child's.
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            rc = child.wait()
        outcome = Outcome(rc, _text(out.fileno()), _text(err.fileno()), signalled, ended)
    if rc < 0 and -rc not in may_die_of:
        raise AssertionError(f"the child died of {signal.Signals(-rc).name}\n{outcome.out}\n{outcome.err}")
    return outcome


def _wait(until: Callable[[], bool], deadline: float, err: int) -> None:
    while not until():
        if time.monotonic() > deadline:
            raise AssertionError(f"the child hangs\n{_text(err)}")
        time.sleep(POLL)


def _ended(child: subprocess.Popen[bytes]) -> bool:
    return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _reached(child: subprocess.Popen[bytes], out: int, marker: str | None) -> bool:
    lines, wanted = (
        (_threads(child.pid), "fastpart") if marker is None else (_text(out).split("\n")[:-1], marker)
    )
    return wanted in lines or _ended(child)


def _threads(pid: int) -> list[str]:
    """Names of the threads of a process; the core calls those that work ``fastpart``."""
    names = []
    for name in Path(f"/proc/{pid}/task").glob("*/comm"):
        with suppress(OSError):
            names.append(name.read_text().rstrip())
    return names


def _text(descriptor: int) -> str:
    return os.pread(descriptor, 1 << 20, 0).decode(errors="replace")
