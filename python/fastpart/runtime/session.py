"""The name of a run, and its files in shared memory and a temporary folder, all under that name."""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from ..core.system import THIS_FILE, try_lock

SHARED_MEMORY = Path("/dev/shm")

_NAME = re.compile(r"(?:sem\.)?(fastpart-(\d+)-[0-9a-f]{8})-")
"""The C library puts ``sem.`` before the names of semaphores."""


class Session:
    """The name of a run, and its files.

    A killed run cannot clean up, so the next run does. A live run holds two locks, one in shared memory and one on its
    folder. They protect its files from runs that cannot see its process, as in another container.

    Attributes
    ----------
    name : str
        ``fastpart-PID-RANDOM``. Names of files in shared memory begin with it and ``-``.
    folder : pathlib.Path
        The temporary folder. Only its owner can read it.
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

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, where: TracebackType | None) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove all files, the lock last."""
        _remove(self.name, self._tmp)
        for lock in self._locks:
            os.close(lock)


class HeldFolder:
    """The folder of a session for what a result needs: it is removed with this object, and at the end of the process.

    As a context it is removed by an error, and stays without one. A copy in another process holds nothing.

    Attributes
    ----------
    path : pathlib.Path
        The folder.
    """

    def __init__(self, tmp_dir: Path | None = None) -> None:
        session = Session(tmp_dir)
        self.path = session.folder
        self.release = weakref.finalize(self, _remove_own, session, os.getpid())

    def __enter__(self) -> HeldFolder:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, where: TracebackType | None) -> None:
        if kind is not None:
            self.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()


def _remove_own(session: Session, owner: int) -> None:
    if os.getpid() == owner:  # a fork has a copy of the object
        session.remove()


def remove_stale(tmp: Path | None = None) -> list[str]:
    """Remove the files of dead runs of this user, and return the names of these runs."""
    tmp = tmp or Path(tempfile.gettempdir())
    stale = [name for name, pid in sorted(_runs(tmp)) if _is_stale(name, pid, tmp)]
    for name in stale:
        _remove(name, tmp)
    return stale


def _runs(tmp: Path) -> set[tuple[str, int]]:
    """Return names and process ids of the runs with files of this user."""
    runs = set()
    for file in _all_files(tmp):
        match = _NAME.match(file.name)
        with suppress(OSError):
            if match and file.lstat().st_uid == os.geteuid():
                runs.add((match[1], int(match[2])))
    return runs


def _all_files(tmp: Path) -> Iterator[Path]:
    for folder in (SHARED_MEMORY, tmp):
        with suppress(OSError), os.scandir(folder) as entries:
            yield from (Path(entry.path) for entry in entries)


def _is_stale(name: str, pid: int, tmp: Path) -> bool:
    # The process is checked first, because a new run has a file before it has the lock on it.
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
    """Lock a file or folder, and return its descriptor. Raise BlockingIOError if another process has the lock."""
    lock = os.open(path, os.O_RDONLY | THIS_FILE)
    try:
        if not try_lock(lock):
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), str(path))
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
