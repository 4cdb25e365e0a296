"""Where the tasks and the replicas of a job run.

An engine has three verbs. :meth:`Engine.submit` runs tasks, which read files and write one. :meth:`Engine.replicas`
runs one program as often as there are workers. What each copy of it exchanges with the others is a superstep.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from ..errors import FastpartError

Exchange = Callable[[bytes], list[bytes]]
"""Sends a message to all replicas, and returns those of all, in the order of their numbers."""

Program = Callable[[int, int, Exchange], Any]
"""What a replica does, given its number and how many there are."""


class Engine(Protocol):
    """A place for tasks and replicas.

    Attributes
    ----------
    workers : int
        How many replicas there are, and how many tasks run at a time.
    """

    workers: int

    def submit(self, task: Callable[..., Any], each: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Run a task with each of these arguments. Return the results in their order."""

    def replicas(self, program: Program) -> Any:
        """Run a program in all replicas. Return the result of the first."""


class Interrupted(FastpartError):
    """Another replica ended, so that this one cannot go on."""


class Threads:
    """The engine in threads of this process: the reference for all others."""

    def __init__(self, workers: int = 1) -> None:
        self.workers = workers

    def submit(self, task: Callable[..., Any], each: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Run a task with each of these arguments."""
        with ThreadPoolExecutor(self.workers) as pool:
            return list(pool.map(lambda given: task(*given), each))

    def replicas(self, program: Program) -> Any:
        """Run a program in as many threads as there are workers."""
        board = _Board(self.workers)
        results: dict[int, Any] = {}
        errors: list[BaseException] = []

        def run(number: int) -> None:
            try:
                results[number] = program(number, self.workers, lambda message: board.swap(number, message))
            except BaseException as error:  # raised below, by the thread of the caller
                errors.append(error)
                board.close()

        threads = [threading.Thread(target=run, args=(number,)) for number in range(self.workers)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:
            board.close()
            raise
        if errors:
            raise next((error for error in errors if not isinstance(error, Interrupted)), errors[0])
        return results[0]


class _Board:
    """Where replicas in threads leave their messages."""

    def __init__(self, count: int) -> None:
        self._messages: list[bytes] = [b""] * count
        self._barrier = threading.Barrier(count)

    def swap(self, number: int, message: bytes) -> list[bytes]:
        """Leave a message, wait for those of all, and take them."""
        self._messages[number] = message
        try:
            self._barrier.wait()
            messages = list(self._messages)
            self._barrier.wait()
        except threading.BrokenBarrierError:
            raise Interrupted("another replica ended") from None
        return messages

    def close(self) -> None:
        """Let nobody wait any longer."""
        self._barrier.abort()
