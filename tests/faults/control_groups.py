"""Memory control groups for tests, of version 1 or 2, where there is the right to make one."""

import os
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")


class ControlGroup:
    """A group with a limit. Pass :meth:`enter` to a child as ``preexec_fn``."""

    def __init__(self, folder):
        self.folder = folder

    def enter(self):
        (self.folder / "cgroup.procs").write_text(str(os.getpid()))

    def kills(self):
        """Return how many processes the group has killed, as far as it counts them."""
        for name in ("memory.events", "memory.oom_control"):
            file = self.folder / name
            if file.exists():
                counts = dict(line.split() for line in file.read_text().splitlines())
                return int(counts.get("oom_kill", 0))
        return 0


@contextmanager
def control_group(limit):
    """Yield a new group that may take so many bytes. It is removed in the end, and its processes are killed."""
    group = _made(limit)
    try:
        yield group
    finally:
        _remove(group.folder)


def _made(limit):
    name, refused = f"fastpart-test-{os.getpid()}", []
    for root, file in ((V1, "memory.limit_in_bytes"), (V2, "memory.max")):
        folder = root / name
        try:
            folder.mkdir()
        except OSError as error:
            refused.append(str(error))
            continue
        try:
            (folder / file).write_text(str(limit))
            return ControlGroup(folder)
        except OSError as error:
            refused.append(str(error))
            folder.rmdir()
    pytest.skip(f"no right to make a memory control group: {'; '.join(refused)}")


def _remove(folder):
    for _ in range(100):
        for process in (folder / "cgroup.procs").read_text().split():
            os.kill(int(process), 9)
        try:
            folder.rmdir()
            return
        except OSError:  # the last process is still leaving
            time.sleep(0.1)
