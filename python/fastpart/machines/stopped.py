"""Processes of this machine that are stopped, as by SIGSTOP. Only Linux tells which."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

_PROCESSES = Path("/proc")


def stopped(title: str, parent: int) -> set[int]:
    """Return the stopped children of a process with a title in their command line."""
    found = set()
    for folder in _PROCESSES.glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            state, its_parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            if state == "T" and int(its_parent) == parent and title in (folder / "cmdline").read_text():
                found.add(int(folder.name))
    return found


def kill(processes: Iterable[int]) -> None:
    """Kill processes of this machine, as far as they are there."""
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def kill_stopped(title: str, patience: float) -> list[int]:
    """Kill the children of the parent of this process that have a title and stay stopped for so many seconds.

    Returns their numbers.
    """
    known = stopped(title, os.getppid())
    if not known:
        return []
    time.sleep(patience)
    still = sorted(known & stopped(title, os.getppid()))
    kill(still)
    return still
