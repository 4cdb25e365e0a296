"""Start processes: copies of a server that has imported torch once, or new interpreters."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO

from ..core.system import after_fork, exit_status, is_stopped, limits, require_processes
from .reporting import PARENT, PIPE
from .session import SHARED_MEMORY

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
