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
