"""What differs between operating systems. No other module asks which one it runs on.

fastpart is made for Linux, and tested there. What other systems lack has a plain stand-in here and in
:mod:`.processes`. The processes that :mod:`fastpart.runtime` starts have none: they need Linux.
"""

from __future__ import annotations

import errno
import os
import platform
import signal
import socket
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

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
