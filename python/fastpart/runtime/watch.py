"""Watch processes that start and end together: the first failure, hangs, and what is left in the end."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from ..core.system import require_processes
from ..errors import TrainingError
from .launch import SHARED_MEMORY, Process, Session, begin, environment_of, is_asleep, send_signal
from .machine_watch import MachineWatch
from .reporting import DONE, FAILED, READY, RUN, WARNING

START_SECONDS = 120.0
"""Time limit until a process reports that it is ready."""

TOGETHER_SECONDS = 5.0
"""Processes with deadlines this close may wait for each other."""

LEAVE_SECONDS = 5.0
"""Time limit for processes to end after all work is done."""

TERM_SECONDS = 2.0
"""Time between SIGTERM and SIGKILL."""

_LOOK_SECONDS = 0.5
"""Time between two looks for stopped processes."""

_TAIL_BYTES, _TAIL_LINES = 16_384, 12
"""Amount of stderr that is stored and shown for each process."""

_HINTS = {
    "SIGKILL": "probably out of memory, see the kernel's log. Use more parts or smaller batches",
    "SIGBUS": "/dev/shm or a disk is full",
}

Message = tuple[str, str, Any]
"""Name of a process, kind of the message, and its content."""


class Child:
    """A started process and its messages."""

    def __init__(
        self,
        name: str,
        process: Process,
        pipes: Sequence[int],
        serves: bool,
        replaceable: bool,
        ready_within: float,
    ) -> None:
        self.name, self.process, self.serves, self.ready_within = name, process, serves, ready_within
        self.replaceable = replaceable
        self.deadline = time.monotonic() + ready_within
        self.stdout, self.stderr, self.reports = pipes
        os.set_blocking(self.stderr, False)
        os.set_blocking(self.stdout, False)
        self._printed = Output(name)
        self.ready = self.done = False
        self.ended = False
        self.failed = (False, math.inf)
        self._stopped_at = math.inf
        self._line = b""
        self._tail = b""

    def read_reports(self) -> list[Message] | None:
        """Return the received messages. None if the process has closed the pipe, which it does when it ends."""
        data = os.read(self.reports, 1 << 16)
        if not data:
            self.ended = True
            return None
        *lines, self._line = (self._line + data).split(b"\n")
        messages = []
        for line in lines:
            kind, content = json.loads(line)
            self.ready = self.ready or kind == READY
            self.done = self.done or kind == DONE
            if kind == FAILED:
                self.failed = tuple(content)
            messages.append((self.name, kind, content))
        return messages

    def read_stderr(self) -> list[Message] | None:
        """Store the end of stderr. Return None if the process has closed it."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self.stderr, 1 << 16)
            self._tail = (self._tail + data)[-_TAIL_BYTES:]
            return [] if data else None
        return []

    def read_stdout(self) -> list[Message] | None:
        """Show what the process has printed. Return None if it has closed stdout."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self.stdout, 1 << 16)
            self._printed.add(data)
            return [] if data else None
        return []

    def drain(self) -> None:
        """Read what the process has written, so that it does not block on it."""
        self.read_stderr()
        self.read_stdout()

    def stopped_seconds(self) -> float:
        """Return for how long the process was seen stopped in all calls without a break."""
        now = time.monotonic()
        self._stopped_at = min(self._stopped_at, now) if is_asleep(self.process) else math.inf
        return max(0.0, now - self._stopped_at)

    def close(self) -> None:
        """Reap the process."""
        self.group = self.process.pid
        self.process.reap()
        self.read_stdout()
        self._printed.end()
        for pipe in (self.stdout, self.stderr, self.reports):
            os.close(pipe)

    def has_orphans(self) -> bool:
        """Return whether children of the reaped process still run."""
        return self.group is not None and _group_runs(self.group)

    def last_lines(self, count: int = _TAIL_LINES) -> str:
        """Return the last lines of stderr."""
        before = None
        while before != self._tail:
            before = self._tail
            self.read_stderr()
        lines = self._tail.decode(errors="replace").strip().splitlines()
        return "\n".join(f"  {line}" for line in lines[-count:])


class Supervisor:
    """Starts processes, receives their messages, and stops all of them as soon as one fails.

    Each child has its own process group, so its children are stopped, too. It dies with the supervisor, even if that is
    killed. It reports through a pipe (:mod:`.reporting`) that it is ready, its results, and that it is done. The end of
    the pipe shows its death at once.

    Leaving the context stops the running processes, and removes the files in shared memory and the temporary folder
    that have the name of the run (:mod:`.launch`).

    Parameters
    ----------
    tmp_dir : pathlib.Path, optional
        The parent of the temporary folder. Default: the system's folder of temporary files.
    timeout : float, optional
        Seconds for which a process may be stopped, as by SIGSTOP. Then it counts as hanging. Default: for ever.

    Attributes
    ----------
    name : str
        The name of the run. Names of children's files in shared memory begin with it and ``-``.
    folder : pathlib.Path
        The temporary folder of the run and its children.

    Raises
    ------
    TrainingError
        A process ended before it was done, or was not ready in time. The text names it and its exit code or signal, and
        quotes the end of its stderr.
    """

    def __init__(self, tmp_dir: Path | None = None, timeout: float = math.inf) -> None:
        require_processes("training in several processes")
        self._children: list[Child] = []
        self._timeout = timeout
        self._selector = selectors.DefaultSelector()
        self._machine_watch: MachineWatch | None = None
        self._mapped: set[Path] = set()
        self._warnings: set[str] = set()
        self._session = Session(tmp_dir)
        self.name, self.folder = self._session.name, self._session.folder

    def __enter__(self) -> Supervisor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, where: TracebackType | None) -> None:
        with _blocked(signal.SIGINT):  # otherwise a second Ctrl-C could interrupt the cleanup
            if kind is None:
                self._wait(self._children, LEAVE_SECONDS)
            self._note_mapped()
            self._end_all()
            for file in self._mapped:
                file.unlink(missing_ok=True)
            self._session.remove()
            if self._machine_watch:
                self._machine_watch.close()

    def start(
        self,
        name: str,
        module: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        ready_within: float = START_SECONDS,
        serves: bool = False,
        replaceable: bool = False,
        preloaded: bool = False,
    ) -> None:
        """Start ``python -m module arguments``. Error messages call it ``name``.

        It must be ready within ``ready_within`` seconds. With ``serves`` it works for the others and need not be done.
        With ``replaceable`` the others go on if it is killed, as long as another one like it is left. With
        ``preloaded`` it begins with torch, which is imported once for all.
        """
        variables = {
            "PYTHONWARNINGS": "ignore",  # so that the last lines of stderr are errors. They are reported later
            "TMPDIR": str(self.folder),
            RUN: self.name,
            **(environment or {}),
        }
        # SIGINT could hit before the process is listed, and SIGUSR1 before the process handles it (:mod:`.reporting`).
        with _blocked(signal.SIGINT, signal.SIGUSR1):
            ours, theirs = zip(os.pipe(), os.pipe(), os.pipe(), strict=True)
            try:
                process = begin(module, arguments, environment_of(variables), theirs, preloaded)
            except BaseException:
                _close(ours)
                raise
            finally:
                _close(theirs)
            child = Child(name, process, ours, serves, replaceable, ready_within)
            self._children.append(child)
        for pipe, read in zip(ours, (child.read_stdout, child.read_stderr, child.read_reports), strict=True):
            self._selector.register(pipe, selectors.EVENT_READ, read)

    def watch_machines(self, watch: MachineWatch) -> None:
        """End together with the supervisors of other machines.

        Across machines DGL chooses the names of files in shared memory, so the files that the children have mapped are
        removed, too.
        """
        self._machine_watch = watch
        for line in watch.lines:
            self._selector.register(line, selectors.EVENT_READ, partial(watch.read, line))

    def messages(self) -> Iterator[Message]:
        """Yield all messages until all processes but those that serve are done."""
        while not all(child.done for child in self._children if not child.serves):
            events = self._selector.select(self._seconds_left())
            for key, _ in events:
                received = key.data()
                if received is None:
                    self._selector.unregister(key.fileobj)
                for message in received or []:
                    if message[1] == WARNING:
                        self._warn(message)
                        continue
                    if message[1] == READY:
                        self._note_mapped()
                    yield message
            self._refuse_deaths()
            self._refuse_sleepers()
            self._refuse_stopped()
        if self._machine_watch is not None:
            self._machine_watch.done()

    def _warn(self, message: Message) -> None:
        """Show a warning, unless another process had the same."""
        name, _, text = message
        if text not in self._warnings:
            self._warnings.add(text)
            show(name, text)

    def _seconds_left(self) -> float | None:
        deadlines = [child.deadline for child in self._children if not child.ready]
        left = max(0.0, min(deadlines) - time.monotonic()) if deadlines else math.inf
        left = min(left, math.inf if self._timeout == math.inf else _LOOK_SECONDS)
        return None if left == math.inf else left

    def _refuse_deaths(self) -> None:
        dead = [child for child in self._children if child.ended and not child.done]
        if not dead:
            return
        self._wait(dead, TERM_SECONDS)  # the pipe closes a moment before the process ends
        for child in filter(self._is_replaced, dead):
            child.done = True
        if not (dead := [child for child in dead if not child.done]):
            return
        # A killed process may have made the others fail, not the other way round. Among processes that failed by
        # themselves, the first one is the cause.
        dead.sort(key=_guilt)
        if dead[0].failed[0]:  # it waited in vain for another one
            running = [child for child in self._children if not child.done and child.process.status() is None]
            if stopped := [child for child in running if is_asleep(child.process)]:
                raise TrainingError(_hang(stopped[0]))
            for child in running:
                send_signal(child.process, signal.SIGUSR1, children=False)
            self._wait(running, TERM_SECONDS)
            if hanging := [child for child in running if child.process.status() is None]:
                raise TrainingError(_hang(hanging[0]))
            for child in running:
                child.read_reports()
            dead = sorted([*dead, *running], key=_guilt)
        raise TrainingError(_death(dead[0]))

    def _is_replaced(self, dead: Child) -> bool:
        """Return whether others do the work of a killed process. An error of its own would hit them, too."""
        left = [child for child in self._children if child.replaceable and not child.ended]
        return dead.replaceable and dead.ready and bool(left) and (dead.process.status() or 0) < 0

    def _refuse_sleepers(self) -> None:
        now = time.monotonic()
        waiting = [child for child in self._children if not child.ready]
        if any(child.deadline < now for child in waiting):
            # Any of them may be the one that the others wait for, so all with a deadline about now are named.
            late = [child for child in waiting if child.deadline < now + TOGETHER_SECONDS]
            names = ", ".join(child.name for child in late)
            raise TrainingError(f"{names}: not ready after {late[0].ready_within:g} s{_last_lines(late[0])}")

    def _refuse_stopped(self) -> None:
        # The others may not wait for it yet, or not notice: it may be the only one, or not have joined them.
        if self._timeout < math.inf:
            for child in self._children:
                if child.stopped_seconds() > self._timeout:
                    raise TrainingError(_hang(child))

    def _note_mapped(self) -> None:
        """Record the files in shared memory that the children have mapped. Their names are not those of the run."""
        for child in self._children if self._machine_watch else []:
            with contextlib.suppress(OSError):
                for line in Path(f"/proc/{child.process.pid}/maps").read_text().splitlines():
                    file = Path(line[line.find("/") :] if "/" in line else "/")
                    if file.parent == SHARED_MEMORY and file.is_file():
                        self._mapped.add(file)

    def _end_all(self) -> None:
        begun = [child for child in self._children if child.process.pid is not None]
        running = [child for child in begun if child.process.status() is None]
        for child in running:
            send_signal(child.process, signal.SIGTERM)
            send_signal(child.process, signal.SIGCONT)  # a stopped process does not end before it continues
        self._wait(running, TERM_SECONDS)
        for child in self._children:
            send_signal(
                child.process, signal.SIGKILL
            )  # also stops the remaining children of a child that has ended
        for child in self._children:
            child.close()
        self._selector.close()
        # Orphans take a moment to end. Their files must not be removed before.
        deadline = time.monotonic() + TERM_SECONDS
        while any(child.has_orphans() for child in self._children) and time.monotonic() < deadline:
            time.sleep(0.005)

    def _wait(self, children: list[Child], seconds: float) -> None:
        """Wait until some processes have ended, up to ``seconds``. Read their output, so that none blocks on it."""
        deadline = time.monotonic() + seconds
        while any(child.process.status() is None for child in children) and time.monotonic() < deadline:
            for child in self._children:
                child.drain()
            time.sleep(0.005)


def _close(pipes: Sequence[int]) -> None:
    for pipe in pipes:
        os.close(pipe)


def _group_runs(group: int) -> bool:
    """Return whether a process of a group runs. Zombies do not count, because init may reap them late."""
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    for file in Path("/proc").glob("[1-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = file.read_text().rpartition(")")[2].split()
            state, its_group, threads = fields[0], int(fields[2]), int(fields[17])
            if its_group == group and (state not in "ZX" or threads > 1):
                return True
    return False


@contextlib.contextmanager
def _blocked(*numbers: signal.Signals) -> Iterator[None]:
    """Delay signals until the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _death(child: Child) -> str:
    status, hint = child.process.status(), None
    if status is None:
        how = "stopped reporting"
    elif status >= 0:
        how = f"ended with exit code {status} before its work was done"
    else:
        name = signal.Signals(-status).name
        how, hint = f"was killed by {name}", _HINTS.get(name)
    because = f" ({hint})" if hint else ""
    return f"{child.name} {how}{because}. The other processes were stopped{_last_lines(child)}"


def _guilt(child: Child) -> tuple[bool, bool, float]:
    """Return a key that is least for the process that failed first by itself."""
    return (child.process.status() or 0) >= 0, *child.failed


def _hang(child: Child) -> str:
    _, _, where = child.last_lines(100).rpartition("(most recent call first):\n")
    state = (
        " It is stopped, as by SIGSTOP"
        if is_asleep(child.process)
        else f" It is here:\n{where}"
        if where
        else ""
    )
    return (
        f"{child.name} hangs: the other processes waited for it until the timeout, and were stopped.{state}"
    )


def _last_lines(child: Child) -> str:
    lines = child.last_lines()
    return f". The end of its stderr:\n{lines}" if lines else ". Its stderr is empty"


_LONGEST = 1 << 16
"""Bytes of a line that are shown at a time."""


def show(name: str, text: str) -> None:
    """Show a line of a worker. Results go to stdout, so nothing of workers may come between."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):  # the user has closed it
            print(f"{name}: {text}", file=sys.stderr, flush=True)


class Output:
    """The stdout of a worker, shown line by line."""

    def __init__(self, name: str) -> None:
        self._name, self._rest = name, b""

    def add(self, data: bytes) -> None:
        """Show the lines that are complete."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            show(self._name, line.decode(errors="replace"))
        if len(self._rest) > _LONGEST:
            self.end()

    def end(self) -> None:
        """Show a last line without an end."""
        if self._rest:
            show(self._name, self._rest.decode(errors="replace"))
        self._rest = b""
