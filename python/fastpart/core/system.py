"""What differs between operating systems: files, processes and memory. No other module asks which one it runs on.

fastpart is made for Linux, and tested there. What other systems lack has a plain stand-in here. The processes that
:mod:`fastpart.runtime` starts have none: they need Linux.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import platform
import re
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import _core
from ..errors import FastpartError

fcntl: ModuleType | None
msvcrt: Any
resource: ModuleType | None
try:
    import fcntl
    import resource
except ImportError:  # Windows
    import msvcrt

    fcntl = resource = None

THIS_FILE: int = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Flags of ``os.open``: a link is an error, since it leads elsewhere, and a pipe does not block."""

_BEHIND = 1 << 30
"""The byte of a file that is locked, where only a range of bytes can be: behind its content."""

_ADDRESS_OF_INTERFACE = 0x8915
"""Linux: SIOCGIFADDR."""


def require_processes(what: str) -> None:
    """Refuse work in several processes where they cannot be started.

    Raises
    ------
    FastpartError
        The system lacks what they are started and watched with.
    """
    if not (hasattr(os, "fork") and hasattr(os, "sched_setaffinity") and hasattr(signal, "pthread_sigmask")):
        raise FastpartError(
            f"{what} needs Linux: it starts processes by calls that {sys.platform} lacks. Use Linux, a container or "
            "WSL. Partitioning works here, and so does training by `full`, which starts none"
        )


def try_lock(file: int) -> bool:
    """Lock an open file or folder until it is closed. Return False if another process has the lock."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            os.lseek(file, _BEHIND, os.SEEK_SET)  # what is locked can be read by its owner only
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    return True


def allocate(file: int, size: int) -> None:
    """Make a file that long, and take the disk that it needs, so that a full disk is found before the work.

    Where the system or its file system cannot take it before it is written, the file gets its length only.
    """
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, size)
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
    os.ftruncate(file, size)


def limits() -> list[tuple[int, int, int]]:
    """Return number, soft and hard value of each limit of this process (:func:`resource.getrlimit`)."""
    if resource is None:
        return []
    numbers = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
    return [(number, *resource.getrlimit(number)) for number in numbers]


def set_limit(number: int, soft: int, hard: int) -> None:
    """Set a limit of this process, as far as the kernel lets it."""
    if resource is not None:
        try:
            resource.setrlimit(number, (soft, hard))
        except (OSError, ValueError):
            return


def processor() -> str:
    """Return the name of the processor of this machine."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def memory_bytes() -> int | None:
    """Return the memory of this machine, or None where it is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows
        return None


def after_fork(call: Callable[[], None]) -> None:
    """Register what a forked process does first."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def address_of(interface: str, any_socket: socket.socket) -> str:
    """Return the IPv4 address of a network interface. Raise OSError if it has none."""
    if fcntl is None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP), interface)
    request = struct.pack("256s", interface.encode()[:15])
    return socket.inet_ntoa(fcntl.ioctl(any_socket, _ADDRESS_OF_INTERFACE, request)[20:24])


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


_ENDS = 1 << 16
"""Bytes of the head, and of the tail."""

State = list[int | str]
"""As JSON has it."""


def state_of(file: str | Path, changes: bool = False) -> State:
    """Return what differs if another file lies there now: size, time, inode, and a hash of head and tail.

    ``changes`` adds the time of the last change, which nobody can set back. It differs after a link to the file, too.
    """
    found = os.stat(file)
    state: State = [found.st_size, found.st_mtime_ns, found.st_ino, ends_of(file)]
    return [*state, found.st_ctime_ns] if changes else state


def ends_of(file: str | Path) -> str:
    """Return a hash of size, head and tail of a file. Copies have the same. That of a small file is of all bytes."""
    found = os.stat(file)
    if not stat.S_ISREG(found.st_mode):
        return ""  # opening a pipe may never end
    with open(file, "rb", buffering=0) as opened:
        head = opened.read(_ENDS)
        opened.seek(max(found.st_size - _ENDS, len(head)))
        tail = opened.read(_ENDS)
    return _core.hash_bytes(b"%d " % found.st_size + head + tail)
