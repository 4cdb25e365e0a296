"""Processes that live and end together."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import TrainingError
from .reporting import DONE, FAILED, PARENT, PIPE, READY, RUN
from .tether import Tether
from .traces import SHARED_MEMORY, Traces

START_SECONDS = 120.0
"""What a process may take until it says that it is ready."""

TOGETHER_SECONDS = 5.0
"""Between the starts of processes that wait for each other."""

LEAVE_SECONDS = 5.0
"""What processes may take to end by themselves once all work is done."""

TERM_SECONDS = 2.0
"""What a process may take to end after SIGTERM, before SIGKILL."""

_TAIL_BYTES, _TAIL_LINES = 16_384, 12
"""Kept of the stderr of each process, and shown of it."""

_HINTS = {
    signal.SIGKILL: "if nobody killed it, memory ran out, as the kernel's log says; use more parts, or smaller batches",
    signal.SIGBUS: "/dev/shm or a disk is full",
}

Message = tuple[str, str, Any]
"""Name of a process, kind of what it says, and what it says."""


class Child:
    """A process that was started, and what it has said."""

    def __init__(
        self, name: str, process: subprocess.Popen[bytes], reports: int, serves: bool, ready_within: float
    ):
        self.name, self.process, self.serves, self.ready_within = name, process, serves, ready_within
        self.deadline = time.monotonic() + ready_within
        self.reports = reports
        assert process.stderr is not None
        self.stderr = process.stderr.fileno()
        os.set_blocking(self.stderr, False)
        self.ready = self.done = False
        self.ended = False
        self.failed_at = math.inf
        self._line = b""
        self._tail = b""

    def read_reports(self) -> list[Message] | None:
        """Return the messages that have come; None if no more can come, which is when the process ends."""
        data = os.read(self.reports, 1 << 16)
        if not data:
            self.ended = True
            return None
        *lines, self._line = (self._line + data).split(b"\n")
        found = []
        for line in lines:
            kind, content = json.loads(line)
            self.ready = self.ready or kind == READY
            self.done = self.done or kind == DONE
            if kind == FAILED:
                self.failed_at = content
            found.append((self.name, kind, content))
        return found

    def read_stderr(self) -> list[Message] | None:
        """Keep the end of what has come on stderr; return None if no more can come."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self.stderr, 1 << 16)
            self._tail = (self._tail + data)[-_TAIL_BYTES:]
            return [] if data else None
        return []

    def status(self) -> int | None:
        """Return how the process ended, as ``Popen.returncode``, without reaping it; None: it has not."""
        info = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if info is None:
            return None
        return info.si_status if info.si_code == os.CLD_EXITED else -info.si_status

    def signal(self, number: signal.Signals) -> None:
        """Signal the process and its own children. It is not reaped yet, so that its number is no other's."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, number)

    def close(self) -> None:
        """Reap the process."""
        self.process.wait()
        os.close(self.reports)
        assert self.process.stderr is not None
        self.process.stderr.close()

    def has_orphans(self) -> bool:
        """Return whether the reaped process has left children behind that run."""
        try:
            os.killpg(self.process.pid, 0)
        except OSError:
            return False
        return _group_runs(self.process.pid)

    def last_words(self) -> str:
        """Return the last lines of stderr."""
        before = None
        while before != self._tail:
            before = self._tail
            self.read_stderr()
        lines = self._tail.decode(errors="replace").strip().splitlines()
        return "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])


class Supervisor:
    """Starts processes, listens to them, and ends all of them as soon as one fails.

    Each child gets a process group of its own, so that it is ended with its own children; dies with the supervisor,
    even if that is killed; and tells through a pipe (:mod:`.reporting`) that it is ready, what it found, and that it is
    done. The pipe also tells its death, at once.

    Leaving the context ends what still runs and removes the files in shared memory and the temporary folder that bear
    the name of the run (:mod:`.traces`).

    Parameters
    ----------
    tmp_dir : pathlib.Path, optional
        Where the temporary folder goes; default: where the system has them.

    Attributes
    ----------
    name : str
        The name of the run; children begin the names of their files in shared memory with it and ``-``.
    folder : pathlib.Path
        The temporary folder of the run, also for temporary files of the children.

    Raises
    ------
    TrainingError
        A process ended before it was done, or was not ready in time. The text says which, how, and what it said last.
    """

    def __init__(self, tmp_dir: Path | None = None) -> None:
        self._children: list[Child] = []
        self._selector = selectors.DefaultSelector()
        self._tether: Tether | None = None
        self._mapped: set[Path] = set()
        self._traces = Traces(tmp_dir)
        self.name, self.folder = self._traces.name, self._traces.folder

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, where: TracebackType | None) -> None:
        with _later(signal.SIGINT):  # else a second Ctrl-C would leave something behind
            if kind is None:
                self._wait(self._children, LEAVE_SECONDS)
            self._note_mapped()
            self._end_all()
            for file in self._mapped:
                file.unlink(missing_ok=True)
            self._traces.remove()
            if self._tether:
                self._tether.close()

    def start(
        self,
        name: str,
        module: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        ready_within: float = START_SECONDS,
        serves: bool = False,
    ) -> None:
        """Start ``python -m module arguments``; ``name`` is what errors call it.

        It is to be ready within so many seconds. With ``serves`` it need not be done: it is there for the others.
        """
        with _later(signal.SIGINT):  # else it could hit when the process is there, and not yet listed
            reports, its_end = os.pipe()
            try:
                process = self._popen(module, arguments, its_end, environment or {})
            except BaseException:
                os.close(reports)
                raise
            finally:
                os.close(its_end)
            child = Child(name, process, reports, serves, ready_within)
            self._children.append(child)
        self._selector.register(reports, selectors.EVENT_READ, child.read_reports)
        self._selector.register(child.stderr, selectors.EVENT_READ, child.read_stderr)

    def tie(self, tether: Tether) -> None:
        """End together with the supervisors of other machines.

        Their processes find the names of their files in shared memory themselves, so what the children here have mapped
        there is removed, too.
        """
        self._tether = tether
        for line in tether.lines:
            self._selector.register(line, selectors.EVENT_READ, partial(tether.read, line))

    def _popen(
        self, module: str, arguments: tuple[str, ...], reports: int, environment: Mapping[str, str]
    ) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=(reports,),
            start_new_session=True,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "PYTHONWARNINGS": "ignore",  # the last words are to be of errors
                "TMPDIR": str(self.folder),
                PIPE: str(reports),
                PARENT: str(os.getpid()),
                RUN: self.name,
                **environment,
            },
        )

    def messages(self) -> Iterator[Message]:
        """Give all messages, until all that do not serve are done."""
        while not all(child.done for child in self._children if not child.serves):
            events = self._selector.select(self._seconds_left())
            for key, _ in events:
                found = key.data()
                if found is None:
                    self._selector.unregister(key.fileobj)
                for message in found or []:
                    if message[1] == READY:
                        self._note_mapped()
                    yield message
            self._refuse_deaths()
            self._refuse_sleepers()
        if self._tether is not None:
            self._tether.done()

    def _seconds_left(self) -> float | None:
        deadlines = [child.deadline for child in self._children if not child.ready]
        return max(0.0, min(deadlines) - time.monotonic()) if deadlines else None

    def _refuse_deaths(self) -> None:
        dead = [child for child in self._children if child.ended and not child.done]
        if not dead:
            return
        self._wait(dead, TERM_SECONDS)  # the pipe closes a moment before the process ends
        # One that was killed may have been the reason for others to fail, not the other way round. Of those that failed
        # by themselves, the first one is: the others may have missed it.
        dead.sort(key=lambda child: ((child.status() or 0) >= 0, child.failed_at))
        raise TrainingError(_death(dead[0]))

    def _refuse_sleepers(self) -> None:
        now = time.monotonic()
        waiting = [child for child in self._children if not child.ready]
        if any(child.deadline < now for child in waiting):
            # Which one keeps the others waiting, nobody knows: all that were to be ready about now are named.
            late = [child for child in waiting if child.deadline < now + TOGETHER_SECONDS]
            names = ", ".join(child.name for child in late)
            said = _said(late[0])
            raise TrainingError(f"{names}: not ready after {late[0].ready_within:g} s{said}")

    def _note_mapped(self) -> None:
        """Note the files in shared memory that a child has mapped, if they do not bear our name."""
        for child in self._children if self._tether else []:
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{child.process.pid}/maps").read_text().splitlines():
                    file = Path(line[line.find("/") :] if "/" in line else "/")
                    if file.parent == SHARED_MEMORY and file.is_file():
                        self._mapped.add(file)

    def _end_all(self) -> None:
        running = [child for child in self._children if child.status() is None]
        for child in running:
            child.signal(signal.SIGTERM)
        self._wait(running, TERM_SECONDS)
        for child in self._children:
            child.signal(signal.SIGKILL)  # also to what a child that has ended has left behind
        for child in self._children:
            child.close()
        self._selector.close()
        # Orphans take a moment to end; their files must not be removed under them.
        deadline = time.monotonic() + TERM_SECONDS
        while any(child.has_orphans() for child in self._children) and time.monotonic() < deadline:
            time.sleep(0.005)

    def _wait(self, children: list[Child], seconds: float) -> None:
        """Wait until some processes have ended, but no longer; none of them may block on a full pipe."""
        deadline = time.monotonic() + seconds
        while any(child.status() is None for child in children) and time.monotonic() < deadline:
            for child in self._children:
                child.read_stderr()
            time.sleep(0.005)


def _group_runs(group: int) -> bool:
    """Return whether a process of a group runs; zombies do not, and whoever adopted them may reap them late."""
    for file in Path("/proc").glob("[1-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = file.read_text().rpartition(")")[2].split()
            state, its_group, threads = fields[0], int(fields[2]), int(fields[17])
            if its_group == group and (state not in "ZX" or threads > 1):
                return True
    return False


@contextlib.contextmanager
def _later(number: signal.Signals) -> Iterator[None]:
    """Let a signal wait."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _death(child: Child) -> str:
    status, hint = child.status(), None
    if status is None:
        how = "stopped reporting"
    elif status >= 0:
        how = f"ended with exit code {status} before its work was done"
    else:
        number = signal.Signals(-status)
        how, hint = f"was killed by {number.name}", _HINTS.get(number)
    because = f" ({hint})" if hint else ""
    return f"{child.name} {how}{because}; the other processes were ended, too{_said(child)}"


def _said(child: Child) -> str:
    words = child.last_words()
    return f". Its last words:\n{words}" if words else ". It said nothing on stderr"
