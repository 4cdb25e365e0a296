"""A replica in a process of Ray: it runs a program, and takes messages from the others meanwhile."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import ray

from ..core.parameters import one_line
from ..errors import InternalError
from .engine import Program

_INLINE = 1 << 16
"""Bytes of a message that travels inside of a call. Ray copies larger ones through its store, once for each node."""
_LOOK = 2.0
"""Seconds of waiting after which a replica looks whether its own messages arrived."""
_MOST = 1000
"""Messages of which a replica may not know yet whether they arrived."""

Outcome = tuple[bool, Any]
"""Whether something returned, and its result or its error."""


def outcome(work: Callable[..., Any], *given: Any) -> Outcome:
    """Return what a function returned or raised.

    An error travels as a value, so Ray neither takes it for the end of a process nor wraps it.
    """
    try:
        return True, work(*given)
    except ray.exceptions.RayError:
        raise
    except BaseException as error:  # raised again by the process that waits
        try:
            ray.cloudpickle.loads(ray.cloudpickle.dumps(error))
        except Exception:
            return False, InternalError(f"{type(error).__name__}: {one_line(error)}")
        return False, error.with_traceback(None)


class Replica:
    """What an actor of Ray is made of. Its methods run in three threads.

    Each replica sends its messages to all others. Nobody is in the middle, so nobody else can be lost, and a superstep
    takes one call in each direction. Replicas are at most one step apart, so at most two steps wait here.
    """

    def __init__(self) -> None:
        self._arrived = threading.Condition()
        self._messages: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
        self._sent: list[Any] = []
        self._step = 0

    @ray.method(concurrency_group="life")
    def ping(self) -> int:
        """Return the number of this process, which shows that it runs."""
        return os.getpid()

    @ray.method(concurrency_group="mail")
    def leave(self, step: int, number: int, message: bytes) -> None:
        """Take a message of another replica."""
        with self._arrived:
            self._messages[step][number] = message
            self._arrived.notify_all()

    def run(self, program: Program, number: int, peers: list[Any]) -> Outcome:
        """Run a program, whose messages go to these replicas."""
        others = [peer for each, peer in enumerate(peers) if each != number]

        def exchange(message: bytes) -> list[bytes]:
            self._send(number, message, others)
            found = self._wait_for(len(others)) | {number: message}
            return [found[each] for each in range(len(peers))]

        answer = outcome(program, number, len(peers), exchange)
        if answer[0]:
            ray.get(self._sent)  # the others wait for the last message, so it must not be lost unnoticed
        return answer

    def _send(self, number: int, message: bytes, others: list[Any]) -> None:
        if len(self._sent) > _MOST:
            self._look()
        given = message if len(message) <= _INLINE or not others else ray.put(message)
        self._sent += [peer.leave.remote(self._step, number, given) for peer in others]

    def _wait_for(self, count: int) -> dict[int, bytes]:
        """Return the messages of this step by their senders, and begin the next."""
        step, self._step = self._step, self._step + 1
        with self._arrived:
            while len(self._messages[step]) < count:
                if not self._arrived.wait(_LOOK):
                    self._look()
            return self._messages.pop(step)

    def _look(self) -> None:
        """Raise the error of a message that did not arrive."""
        if self._sent:
            done, self._sent = ray.wait(self._sent, num_returns=len(self._sent), timeout=0)
            ray.get(done)


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
    """Kill the children of the parent of this process that have a title and stay stopped for ``patience`` seconds.

    Returns their numbers.
    """
    known = stopped(title, os.getppid())
    if not known:
        return []
    time.sleep(patience)
    still = sorted(known & stopped(title, os.getppid()))
    kill(still)
    return still
