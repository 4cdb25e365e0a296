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
import shutil
import signal
import socket
import stat
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath
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

_NO_LIMIT = 1 << 60
"""Bytes from which on a control group of version 1 means that it has no limit."""

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


PROC = Path("/proc")
"""Where Linux tells about processes, the processor and mounted file systems."""

CONTROL_GROUPS = Path("/sys/fs/cgroup")
"""Where Linux tells about control groups."""

_FEATURES = ("sse4_2", "avx2", "avx512f", "bmi2", "asimd", "sve")
"""Instructions of processors that numeric code asks for."""


def _read(file: Path) -> str:
    """Return the text of a file of the kernel, or none where it cannot be read."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""


def _cpuinfo(*keys: str) -> str:
    """Return the first value of any of the keys in the description of the processor."""
    for line in _read(PROC / "cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() in keys:
            return value.strip()
    return ""


def processor() -> str:
    """Return the name of the processor of this machine."""
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def processor_features() -> list[str] | None:
    """Return which of some vector instructions the processor has. None: they are not known."""
    flags = _cpuinfo("flags", "Features").split()
    return [name for name in _FEATURES if name in flags] if flags else None


def usable_processors() -> int:
    """Return how many processors this process may run on. A control group may let it use fewer at a time."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def graphics_processors() -> list[str]:
    """Return the GPUs that the driver of NVIDIA knows, by their models."""
    found = []
    for file in sorted((PROC / "driver/nvidia/gpus").glob("*/information")):
        model = re.search(r"^Model:\s*(.*)$", _read(file), re.MULTILINE)
        found.append(model[1].strip() if model else "unknown model")
    return found


def memory_bytes() -> int | None:
    """Return the memory of this machine, or None where it is not known."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows
        return None


def _files_of_groups(controller: str, *names: str) -> list[str]:
    """Return the texts of files of the control group of this process, and of the groups above it."""
    found = []
    for line in _read(PROC / "self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        home = CONTROL_GROUPS / controller if controllers else CONTROL_GROUPS
        own = PurePosixPath(path.lstrip("/"))
        for group in (own, *own.parents):
            texts = [_read(home / group / name) for name in names]
            found.append(" ".join(texts).strip())
    return [text for text in found if text]


def group_memory() -> int | None:
    """Return the tightest memory limit of the control groups of this process, or None if they have none."""
    texts = _files_of_groups("memory", "memory.max") + _files_of_groups("memory", "memory.limit_in_bytes")
    limits = [int(text) for text in texts if text.isdecimal()]
    return min((limit for limit in limits if limit < _NO_LIMIT), default=None)


def group_processors() -> float | None:
    """Return how many processors the control groups let this process use at a time. None: they have no limit."""
    texts = _files_of_groups("cpu", "cpu.max") + _files_of_groups(
        "cpu", "cpu.cfs_quota_us", "cpu.cfs_period_us"
    )
    pairs = [text.split() for text in texts]
    return min(
        (int(pair[0]) / int(pair[1]) for pair in pairs if len(pair) == 2 and all(map(str.isdecimal, pair))),
        default=None,
    )


def address_space() -> int | None:
    """Return the bytes of addresses that ``ulimit -v`` lets this process have, or None if it has no limit."""
    if resource is None:
        return None
    limit: int = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def file_system(folder: Path) -> str | None:
    """Return the type of the file system that a folder lies on, such as ext4, or None where it is not known."""
    try:
        device = folder.stat().st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
    except (AttributeError, OSError):
        return None
    for line in _read(PROC / "self/mountinfo").splitlines():
        mount, _, source = line.partition(" - ")
        if mount.split()[2:3] == [wanted]:
            return source.split()[0]
    return None


def free_bytes(folder: Path) -> int | None:
    """Return the bytes that are free where a folder is or would be, or None where that is not known."""
    try:
        return shutil.disk_usage(next(each for each in (folder, *folder.parents) if each.is_dir())).free
    except (OSError, StopIteration):
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
