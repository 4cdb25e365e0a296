"""Memory and states of processes, and children that die with their parent."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import signal
from contextlib import suppress
from pathlib import Path

_PARENT_DEATH_SIGNAL = 1
"""Linux: PR_SET_PDEATHSIG."""
_PROC = Path("/proc/self/statm").exists()
"""Whether the system tells about processes in files, as Linux does."""


def anonymous_bytes(pid: int | str = "self") -> int:
    """Return the anonymous memory in RAM, and 0 where the system does not tell.

    Mapped files do not count, because the kernel can reclaim them.
    """
    if not _PROC:
        return 0
    _, resident, shared = Path(f"/proc/{pid}/statm").read_bytes().split()[:3]
    return (int(resident) - int(shared)) * mmap.PAGESIZE


def resident_bytes(peak: bool = False) -> int:
    """Return the resident memory of this process, or its peak. Mapped files count. 0 where the system does not tell."""
    if not _PROC:
        return 0
    name, status = "VmHWM" if peak else "VmRSS", Path("/proc/self/status").read_text()
    match = re.search(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)
    return int(match[1]) * 1024 if match else 0


def is_stopped(pid: int) -> bool:
    """Return whether a process is stopped, as by SIGSTOP."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "Tt"


def exit_status(pid: int) -> int | None:
    """Return the exit status of a child like ``Popen.returncode``, without reaping it. None while it runs."""
    info = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if info is None:
        return None
    return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status


def continue_siblings() -> None:
    """Let stopped children of the parent of this process continue. Otherwise its SIGTERM would not end them."""
    parent = os.getppid()
    with suppress(OSError):
        for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
            if is_stopped(int(child)):
                os.kill(int(child), signal.SIGCONT)


def die_with(parent: int) -> None:
    """Ask the kernel to kill this process when its parent dies. End it if the parent is already dead."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
