"""What a run leaves outside its processes: files in shared memory and a temporary folder, all under one name."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType

SHARED_MEMORY = Path("/dev/shm")

_NAME = re.compile(r"(?:sem\.)?(fastpart-(\d+)-[0-9a-f]{8})-")
"""``sem.`` is what the C library puts before the names of semaphores."""


class Traces:
    """The name of a run, and all that bears it.

    A run whose process was killed cannot clean up: the next one does. While a run lives it holds locks, one in shared
    memory and one on its folder, so that both are safe from runs that do not see its process, as those in another
    container.

    Attributes
    ----------
    name : str
        ``fastpart-PID-RANDOM``. Files of the run in shared memory have names that begin with it and ``-``.
    folder : pathlib.Path
        The temporary folder, for its owner only.
    """

    def __init__(self, tmp_dir: Path | None = None) -> None:
        self._tmp = tmp_dir or Path(tempfile.gettempdir())
        remove_stale(self._tmp)
        self.name = f"fastpart-{os.getpid()}-{secrets.token_hex(4)}"
        self._locks: list[int] = []
        try:
            lock = _lock_of(self.name)
            lock.touch(mode=0o600, exist_ok=False)
            self._locks.append(_locked(lock))
            self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=self._tmp))
            self._locks.append(_locked(self.folder))
        except BaseException:
            self.remove()
            raise

    def __enter__(self) -> Traces:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, where: TracebackType | None) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove everything, the lock last."""
        _remove(self.name, self._tmp)
        for lock in self._locks:
            os.close(lock)


def remove_stale(tmp: Path | None = None) -> list[str]:
    """Remove what dead runs of this user left in shared memory and a temporary folder; return their names."""
    tmp = tmp or Path(tempfile.gettempdir())
    stale = [name for name, pid in sorted(_runs(tmp)) if _is_stale(name, pid, tmp)]
    for name in stale:
        _remove(name, tmp)
    return stale


def _runs(tmp: Path) -> set[tuple[str, int]]:
    """Names and processes of the runs of which this user has files."""
    found = set()
    for file in _all_files(tmp):
        match = _NAME.match(file.name)
        with suppress(OSError):
            if match and file.lstat().st_uid == os.geteuid():
                found.add((match[1], int(match[2])))
    return found


def _all_files(tmp: Path) -> Iterator[Path]:
    for folder in (SHARED_MEMORY, tmp):
        with suppress(OSError), os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries)


def _is_stale(name: str, pid: int, tmp: Path) -> bool:
    # The process is asked first: a run that has just begun has a file, and not yet the lock on it.
    if _alive(pid):
        return False
    locks = [_lock_of(name), *tmp.glob(f"{name}-*")]
    for lock in locks:
        try:
            os.close(_locked(lock))
        except FileNotFoundError:
            pass
        except OSError:
            return False
    return True


def _locked(path: Path) -> int:
    """Return the descriptor of a file or folder that is locked with it; BlockingIOError: somebody else has."""
    lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True


def _remove(name: str, tmp: Path) -> None:
    lock = _lock_of(name)
    for file in _all_files(tmp):
        match = _NAME.match(file.name)
        if match and match[1] == name and file != lock:
            if file.is_dir() and not file.is_symlink():
                shutil.rmtree(file, ignore_errors=True)
            else:
                with suppress(OSError):
                    file.unlink()
    with suppress(OSError):
        lock.unlink()


def _lock_of(name: str) -> Path:
    return SHARED_MEMORY / f"{name}-lock"
