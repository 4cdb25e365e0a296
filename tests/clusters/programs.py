"""What tasks and replicas do in the tests of Ray. Its processes import it."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Sums:
    """Supersteps whose result depends on each message and its sender."""

    steps: int
    size: int = 8

    def __call__(self, number, count, exchange):
        total = number
        for _ in range(self.steps):
            messages = exchange(total.to_bytes(8, "little") * (self.size // 8))
            assert [len(each) for each in messages] == [self.size] * count
            total = (
                sum(i * int.from_bytes(each[-8:], "little") for i, each in enumerate(messages, 1)) + 1
            ) % 1_000_003
        return total


@dataclass(frozen=True)
class Killed:
    """A program of which a replica, its node, or another process gets a signal in these supersteps, once each."""

    program: Any
    folder: Path
    steps: tuple[int, ...]
    number: int = signal.SIGKILL
    node: bool = False
    process: int | None = None
    replica: int = 1

    def __call__(self, number, count, exchange):
        done = 0

        def counted(message):
            nonlocal done
            done += 1
            if number == self.replica and done in self.steps and once(self.folder / str(done)):
                own = os.getppid() if self.node else os.getpid()
                os.kill(self.process or own, self.number)
                time.sleep(0.5)
            return exchange(message)

        return self.program(number, count, counted)


@dataclass(frozen=True)
class Raises:
    error: BaseException

    def __call__(self, number, count, exchange):
        exchange(b"")
        if number == 1:
            raise self.error
        exchange(b"")


def once(file):
    """Return whether this is the first call for a file. It then has the number of this process."""
    try:
        with file.open("x") as new:
            new.write(str(os.getpid()))
    except FileExistsError:
        return False
    return True


def double(x):
    return 2 * x


def double_killed_once(x, folder):
    if x == 3 and once(folder / "killed"):
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * x


def double_stopped_once(x, folder):
    if x == 3 and once(folder / "stopped"):
        os.kill(os.getpid(), signal.SIGSTOP)
    return 2 * x


def killing(process, file, task, *given):
    """Run a task that kills a process first, once."""
    if once(file):
        os.kill(process, signal.SIGKILL)
        time.sleep(0.5)
    return task(*given)


def always_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def raises(error):
    raise error


def sleeps(file):
    while not file.exists():
        time.sleep(0.05)
