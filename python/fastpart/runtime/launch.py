"""Start processes: copies of a server that has imported torch once, or new interpreters.

A run has a name, and so have its files in shared memory and its temporary folder.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from ..core.system import THIS_FILE, after_fork, exit_status, is_stopped, limits, require_processes, try_lock
from .reporting import PARENT, PIPE

SHARED_MEMORY = Path("/dev/shm")

_NAME = re.compile(r"(?:sem\.)?(fastpart-(\d+)-[0-9a-f]{8})-")
"""The C library puts ``sem.`` before the names of semaphores."""


class Session:
    """The name of a run, and its files.

    A killed run cannot clean up, so the next run does. A live run holds two locks, one in shared memory and one on its
    folder. They protect its files from runs that cannot see its process, as in another container.

    Attributes
    ----------
    name : str
        ``fastpart-PID-RANDOM``. Names of files in shared memory begin with it and ``-``.
    folder : pathlib.Path
        The temporary folder. Only its owner can read it.
    """

    def __init__(self, tmp_dir: Path | None = None) -> None:
        self._tmp = tmp_dir or Path(tempfile.gettempdir())
        remove_stale(self._tmp)
        self.name = f"fastpart-{os.getpid()}-{secrets.token_hex(4)}"
        self._locks: list[int] = []
        try:
            lock = _lock_of(self.name)
            lock.touch(mode=0o600, exist_ok=False)
            self._locks.append(_locked(lock))
            self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=self._tmp))
            self._locks.append(_locked(self.folder))
        except BaseException:
            self.remove()
            raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, where: TracebackType | None) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove all files, the lock last."""
        _remove(self.name, self._tmp)
        for lock in self._locks:
            os.close(lock)


def remove_stale(tmp: Path | None = None) -> list[str]:
    """Remove the files of dead runs of this user, and return the names of these runs."""
    tmp = tmp or Path(tempfile.gettempdir())
    stale = [name for name, pid in sorted(_runs(tmp)) if _is_stale(name, pid, tmp)]
    for name in stale:
        _remove(name, tmp)
    return stale


def _runs(tmp: Path) -> set[tuple[str, int]]:
    """Return names and process ids of the runs with files of this user."""
    runs = set()
    for file in _all_files(tmp):
        match = _NAME.match(file.name)
        with suppress(OSError):
            if match and file.lstat().st_uid == os.geteuid():
                runs.add((match[1], int(match[2])))
    return runs


def _all_files(tmp: Path) -> Iterator[Path]:
    for folder in (SHARED_MEMORY, tmp):
        with suppress(OSError), os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries)


def _is_stale(name: str, pid: int, tmp: Path) -> bool:
    # The process is checked first, because a new run has a file before it has the lock on it.
    if _alive(pid):
        return False
    locks = [_lock_of(name), *tmp.glob(f"{name}-*")]
    for lock in locks:
        try:
            os.close(_locked(lock))
        except FileNotFoundError:
            pass
        except OSError:
            return False
    return True


def _locked(path: Path) -> int:
    """Lock a file or folder, and return its descriptor. Raise BlockingIOError if another process has the lock."""
    lock = os.open(path, os.O_RDONLY | THIS_FILE)
    try:
        if not try_lock(lock):
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), str(path))
    except BaseException:
        os.close(lock)
        raise
    return lock


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _remove(name: str, tmp: Path) -> None:
    lock = _lock_of(name)
    for file in _all_files(tmp):
        match = _NAME.match(file.name)
        if match and match[1] == name and file != lock:
            if file.is_dir() and not file.is_symlink():
                shutil.rmtree(file, ignore_errors=True)
            else:
                with suppress(OSError):
                    file.unlink()
    with suppress(OSError):
        lock.unlink()


def _lock_of(name: str) -> Path:
    return SHARED_MEMORY / f"{name}-lock"


PRELOADED = ("torch", "torch.distributed", "torch._dynamo")
"""Modules that the server imports, the last one for optimizers. None may start threads: copies lose them."""

_READ_ONCE = (
    *("ATEN", "CUDA", "DNNL", "GOMP", "KMP", "LD_", "MALLOC", "MKL", "NVIDIA", "OMP", "ONEDNN", "OPENBLAS"),
    *("PYTHON", "PYTORCH", "TORCH_", "VIRTUAL_ENV"),
)
"""Beginnings of variables that interpreters and libraries read when they are loaded."""

STATUS = struct.Struct("i")
"""A message of the server: first the number of the process, and in the end its exit status."""


def interpreter(module: str, *arguments: str) -> list[str]:
    """Return the command of ``python -m module arguments``.

    It does not look for modules in the current folder, where anything may be called ``random.py``.
    """
    return [sys.executable, "-P", "-m", module, *arguments]


def environment_of(added: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a process that imports what this one can import."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **added}


class NewProcess:
    """A new interpreter, or another command. It leads a group of its own, and keeps its number until it is reaped."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        stdout: int | IO[bytes],
        stderr: int | IO[bytes],
        files: Sequence[int] = (),
    ) -> None:
        require_processes("a process of its own")
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            pass_fds=files,
            start_new_session=True,
            env=environment,
        )
        self.pid = self._process.pid

    def status(self) -> int | None:
        """Return the exit status like ``Popen.returncode``, without reaping the process. None while it runs."""
        return exit_status(self.pid)

    def reap(self) -> int:
        """Wait for the end, and return the exit status."""
        return self._process.wait()


class ForkedProcess:
    """A copy of the server, which does what a :class:`NewProcess` would do.

    The server is its parent, so it tells the number and the exit status. It reaps the process when it is asked to.
    """

    def __init__(
        self, module: str, arguments: Sequence[str], environment: Mapping[str, str], files: Sequence[int]
    ) -> None:
        task = {
            "words": [module, *arguments],
            "environment": dict(environment),
            "path": [*filter(None, sys.path)],
            "processors": [*os.sched_getaffinity(0)],
            "limits": limits(),
        }
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folder = os.open(".", os.O_PATH)
        try:
            # Pythons of conda and uv lack os.memfd_create, because they were built for an older C library.
            with theirs, tempfile.TemporaryFile("w+", dir=SHARED_MEMORY) as request:
                json.dump(task, request)
                request.seek(0)
                self._server = Server.fork([theirs.fileno(), request.fileno(), folder, *files])
        except BaseException:
            self._line.close()
            raise
        finally:
            os.close(folder)
        self._pid: int | None = None
        self._status: int | None = None

    @property
    def pid(self) -> int | None:
        """The number. None before the process has begun."""
        self._hear(socket.MSG_DONTWAIT)
        return self._pid

    def status(self) -> int | None:
        """Return the exit status as :meth:`NewProcess.status` does."""
        self._hear(socket.MSG_DONTWAIT)
        return self._status

    def reap(self) -> int:
        """Wait for the end, and return the exit status."""
        while self._pid is not None and self._status is None:  # one that has not begun never will
            self._hear()
        self._line.close()
        return -signal.SIGKILL if self._status is None else self._status

    def _hear(self, flags: int = 0) -> None:
        """Hear what the server has to say. If it is gone, so is the process, and its number may be another one's."""
        while self._status is None:
            try:
                answer = self._line.recv(STATUS.size, flags)
            except BlockingIOError:
                return
            except ConnectionError:
                answer = b""
            if not answer:
                self._pid, self._status = None, self._server.status()
            elif self._pid is None:
                (self._pid,) = STATUS.unpack(answer)
            else:
                (self._status,) = STATUS.unpack(answer)


Process = NewProcess | ForkedProcess


def begin(
    module: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    pipes: Sequence[int],
    preloaded: bool,
) -> Process:
    """Begin ``python -m module arguments`` with pipes for stdout, stderr and reports. Preloaded, it is a copy."""
    if preloaded:
        return ForkedProcess(module, arguments, environment, pipes)
    stdout, stderr, reports = pipes
    own = {PIPE: str(reports), PARENT: str(os.getpid())}
    return NewProcess(interpreter(module, *arguments), {**environment, **own}, stdout, stderr, [reports])


def send_signal(process: Process, number: signal.Signals, children: bool = True) -> None:
    """Signal a process that is not reaped yet, and its children."""
    if process.pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            (os.killpg if children else os.kill)(process.pid, number)


def is_asleep(process: Process) -> bool:
    """Return whether a process is stopped, as by SIGSTOP."""
    with suppress(OSError):
        return process.pid is not None and is_stopped(process.pid)
    return False


class Server:
    """The process that copies itself (:mod:`.server`). It ends with this process, and its copies end with it."""

    _lock = threading.Lock()
    _latest: Server | None = None

    def __init__(self, read_once: Mapping[str, str]) -> None:
        self._read_once = read_once
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            # One thread: libraries that start theirs as they are loaded would lose them in the copies.
            environment = environment_of({"OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"})
            number = theirs.fileno()
            self._process = subprocess.Popen(
                interpreter("fastpart.runtime.server", str(number), *PRELOADED),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[number],
                start_new_session=True,
                env=environment,
            )
        self._end = weakref.finalize(self, _end, self._control, self._process)

    @classmethod
    def fork(cls, files: Sequence[int]) -> Server:
        """Ask for a process with these files (:func:`.server.main`). Return the server that is asked.

        It is another one than before if that has died, or has read variables that have changed since.
        """
        read_once = {name: value for name, value in os.environ.items() if name.startswith(_READ_ONCE)}
        with cls._lock:
            server = cls._latest
            if server is None or server._read_once != read_once or server._process.poll() is not None:
                server = cls._latest = Server(read_once)
            socket.send_fds(server._control, [b"f"], files)
            return server

    def status(self) -> int:
        """Return the exit status of this server, which has closed its end of a line."""
        with suppress(subprocess.TimeoutExpired):
            return self._process.wait(1)
        return -signal.SIGKILL

    @classmethod
    def forget(cls) -> None:
        """Leave the server to the parent of this process, which was forked. It shall end with that one."""
        cls._lock = threading.Lock()
        if (server := cls._latest) is not None:
            server._end.detach()
            server._control.close()
            server._process.returncode = 0
            cls._latest = None


def _end(control: socket.socket, process: subprocess.Popen[bytes]) -> None:
    """End a server that nobody needs, or together with this process."""
    control.close()
    process.kill()
    process.wait()


after_fork(Server.forget)
