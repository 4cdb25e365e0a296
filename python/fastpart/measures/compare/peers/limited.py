"""Run a command within limits. The command never outlives the call."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ....core.system import anonymous_bytes
from ....errors import FastpartError, MemoryBudgetError
from ....runtime.launch import NewProcess, send_signal

POLL = 0.005
"""Seconds between two looks at the child."""

TAIL_BYTES = 1 << 14
"""Bytes of the end of stderr that are kept."""

_PACKAGES = str(Path(__file__).parents[4])


class PeerError(FastpartError):
    """A peer crashed, failed, or exceeded a limit. ``traceback`` is that of the child process, if there is one."""

    def __init__(self, text: str, traceback: str | None = None) -> None:
        super().__init__(text)
        self.traceback = traceback


def run_limited(name: str, command: Sequence[str], *, seconds: float, memory: int) -> None:
    """Run a command to its end.

    The command and its children are killed when they take more than ``seconds`` or ``memory`` (bytes of anonymous
    memory), and when this call ends in any other way, as by Ctrl-C.

    Raises
    ------
    PeerError
        With the signal it died of, the last line it wrote to stderr, or the limit.
    MemoryBudgetError
        It took too much memory.
    """
    paths = os.pathsep.join(filter(None, (_PACKAGES, os.environ.get("PYTHONPATH"))))
    with tempfile.TemporaryFile() as complaints:
        child = NewProcess(command, os.environ | {"PYTHONPATH": paths}, subprocess.DEVNULL, complaints)
        try:
            _wait(name, child, seconds, memory)
        finally:
            send_signal(child, signal.SIGKILL)
            code = child.reap()
        complaints.seek(max(complaints.seek(0, os.SEEK_END) - TAIL_BYTES, 0))
        text = complaints.read().decode(errors="replace").strip()
        trace, _, last = text.rpartition("\n")
    if code < 0:
        raise PeerError(f"{name} crashed: {signal.Signals(-code).name}")
    if code > 0:
        raise PeerError(
            f"{name} failed: {last or f'exit code {code}'}", trace if "Traceback" in trace else None
        )


def _wait(name: str, child: NewProcess, seconds: float, memory: int) -> None:
    deadline = time.monotonic() + seconds
    while child.status() is None:
        if time.monotonic() > deadline:
            raise PeerError(f"{name} took longer than {seconds:g} s. Raise time_limit")
        if _taken(child) > memory:
            raise MemoryBudgetError(
                f"{name} took more than {memory / 1e6:.1f} MB of memory. Raise memory_limit"
            )
        time.sleep(POLL)


def _taken(child: NewProcess) -> int:
    with suppress(OSError, ValueError):  # the process has ended
        return anonymous_bytes(child.pid)
    return 0
