"""What is left of processes and of a run."""

import os
import time
from contextlib import suppress
from pathlib import Path


def runs(pid: int) -> bool:
    """Return whether a process exists that is no zombie."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def gone(*pids: int, seconds: float = 10) -> bool:
    """Wait until processes have ended."""
    deadline = time.monotonic() + seconds
    while any(map(runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(runs, pids))


def in_session_of(leaders: set[int]) -> list[int]:
    """Return the living processes of the sessions of these processes."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if os.getsid(int(entry.name)) in leaders and runs(int(entry.name)):
                    found.append(int(entry.name))
    return found


def traces(supervisor: int, tmp: Path) -> list[str]:
    """Return what a run of this process has in shared memory and in the folder of temporary files."""
    return [
        entry.name
        for folder in (Path("/dev/shm"), tmp)
        for entry in folder.iterdir()
        if f"fastpart-{supervisor}-" in entry.name
    ]


def descendants(pid):
    """Return the descendants of a process."""
    below = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return below + [descendant for child in below for descendant in descendants(child)]


def tree(pid):
    """Return the descendants of a process, but not the server of workers, which stays until the process ends."""
    return [below for below in descendants(pid) if "fastpart.runtime.server" not in command(below)]


def command(pid):
    """Return the command line of a process, empty if it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text()
    return ""


def named(text, number=0):
    """Return a descendant of ours by a part of its command line."""
    found = [pid for pid in tree(os.getpid()) if text in command(pid)]
    return sorted(found)[number]


def sessions_of(folder):
    """Return the processes whose temporary folder is in a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if any(line.startswith(b"TMPDIR=" + os.fsencode(folder)) for line in environment):
                found.append(int(entry.name))
    return found
