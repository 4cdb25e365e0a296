"""The process that copies itself, so that workers need not import torch: ``python -P -m fastpart.runtime.server``.

It has one thread, computes nothing and touches no GPU, so that its copies can do all of that.

The fork server of :mod:`multiprocessing` would not do. It imports the user's ``__main__`` again, and modules from the
current folder. The user's own fork server would be the same one. Ctrl-C ends it while it imports. It outlives a killed
user while a worker is left, and workers outlive it. It reaps workers at once, so that a signal may hit another process.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import selectors
import signal
import socket
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from ..core.system import die_with, exit_status, set_limit
from .launch import STATUS
from .reporting import PARENT, PIPE

_FILES = 6
"""The line of a worker, its task, its current folder, stdout, stderr, and the pipe of its reports."""


class Workers:
    """The copies of this process, each with a line to the launcher.

    A line tells the launcher the number of the worker, and the exit status after its end. The launcher closes the line
    when the worker may be reaped.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._pids: dict[socket.socket, int] = {}
        self._ended: set[socket.socket] = set()
        self._selector = selectors.DefaultSelector()
        # A child that ends wakes the selector.
        self._wake, self._waker = socket.socketpair()
        self._waker.setblocking(False)
        for line in (control, self._wake):
            self._selector.register(line, selectors.EVENT_READ)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._waker.fileno(), warn_on_full_buffer=False)

    def serve(self) -> tuple[int, list[int]] | None:
        """Start workers until the launcher is gone. Then kill what is left of them.

        A worker returns from here, too, so that tracebacks are not of the server: with its parent and its files.
        """
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._control:
                    request, files, *_ = socket.recv_fds(self._control, 1, _FILES)
                    if not request:
                        for pid in self._pids.values():
                            _kill(pid)
                        return None
                    if parent := self._fork(socket.socket(fileno=files[0]), files[1:]):
                        return parent, files[1:]
                    for file in files[1:]:
                        os.close(file)
                elif key.fileobj is self._wake:
                    self._wake.recv(1 << 10)
                else:
                    self._reap(key.fileobj)  # type: ignore[arg-type]
            self._tell()

    def _fork(self, line: socket.socket, files: list[int]) -> int | None:
        """Start a worker, unless the launcher has given up meanwhile. Return its parent in it, and None here."""
        with suppress(BlockingIOError):
            line.recv(1, socket.MSG_DONTWAIT)
            line.close()
            return None
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            with suppress(OSError):
                os.write(files[3], f"{error}\n".encode())
            line.close()
            return None
        if pid == 0:
            self._leave(line)
            return parent
        self._pids[line] = pid
        self._selector.register(line, selectors.EVENT_READ)
        with suppress(OSError):  # it may have ended, or the launcher have given up
            os.setpgid(
                pid, pid
            )  # the worker does so, too, but maybe later than the launcher signals its group
            line.send(STATUS.pack(pid))
        return None

    def _leave(self, line: socket.socket) -> None:
        """Close in a worker what belongs to the server."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._selector.close()
        for each in (line, self._control, self._wake, self._waker, *self._pids):
            each.close()

    def _tell(self) -> None:
        """Tell the launcher of the workers that have ended, but do not reap them yet."""
        for line, pid in self._pids.items():
            if line not in self._ended and (status := exit_status(pid)) is not None:
                self._ended.add(line)
                with suppress(OSError):
                    line.send(STATUS.pack(status))

    def _reap(self, line: socket.socket) -> None:
        pid = self._pids.pop(line)
        _kill(pid)
        os.waitpid(pid, 0)
        self._ended.discard(line)
        self._selector.unregister(line)
        line.close()


def _kill(pid: int) -> None:
    """Kill a worker that is not reaped, and its children."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def become(parent: int, request: int, folder: int, stdout: int, stderr: int, reports: int) -> NoReturn:
    """Do a task as a new interpreter would do it."""
    code = 1
    try:
        die_with(parent)
        os.setpgid(0, 0)
        with open(request) as task:
            words, environment, path, processors, limits = json.load(task).values()
        os.fchdir(folder)
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        for file in (folder, stdout, stderr):
            os.close(file)
        os.sched_setaffinity(0, processors)
        for limit in limits:
            set_limit(*limit)
        os.environ.clear()
        os.environ.update({**environment, PARENT: str(parent), PIPE: str(reports)})
        sys.path[:] = dict.fromkeys([*path, *sys.path])
        sys.argv[:] = words
        _rename([sys.executable, "-m", *words])
        tempfile.tempdir = None
        if numpy := sys.modules.get("numpy"):
            numpy.random.seed()  # as that of Python, which does so by itself
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _rename(words: list[str]) -> None:
    """Let ``ps`` show a command line, as far as it fits into that of the server."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = int(fields[45]), int(fields[46])  # where the arguments lie
    text = b"\0".join(os.fsencode(word) for word in words)[: end - begin - 1]
    ctypes.memmove(begin, text.ljust(end - begin, b"\0"), end - begin)


def main() -> None:
    """Import what workers need, and start them as the launcher asks for them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGUSR1})
    control = socket.socket(fileno=int(sys.argv[1]))
    for name in sys.argv[2:]:
        with suppress(Exception):  # a worker will say what is wrong
            importlib.import_module(name)
    gc.collect()
    gc.freeze()  # copies do not touch these objects, so their pages stay shared
    if task := Workers(control).serve():
        become(task[0], *task[1])
    os._exit(0)  # the exit handlers of torch take long


if __name__ == "__main__":
    main()
