"""What becomes of an output that exists. All that write ask here, before any work.

**Owner.** One process at a time writes an output and what is kept beside it (``OUT.partial``, a work folder). It holds
the lock of the file ``.NAME.lock`` beside it, which names the process. The system frees a lock when its process dies,
so a file that a kill leaves is no obstacle. The owner removes the file when it is done.

**Replacing.** A file is replaced. A directory of fastpart is replaced if the new one holds all that the old one held.
Otherwise it is refused, unless the caller may overwrite it. Anything else is never touched.
"""

from __future__ import annotations

import errno
import os
import platform
import stat
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from .. import _core
from ..errors import ParameterError
from .folders import content_of, owned
from .notes import log
from .parameters import shown
from .system import after_fork, try_lock

_SIGN = "fastpart: "
"""What the content of a lock file begins with. Other files of its name are not ours."""

KINDS: Mapping[str, str] = {
    "num_directed_edges": "parts with their edges",
    "features": "features",
    "halo_features": "features of the halo",
    "labels": "labels",
    "splits": "splits",
    "times": "times",
    "edge_features": "features of edges",
    "edge_times": "times of edges",
    "edge_splits": "splits of edges",
    "split": "splits",
    "weights": "weights",
}
"""What a partition directory or a graph directory may hold, by the entries of its marker."""


def replaceable(
    target: Path, marker: str, earlier: str, what: str, holds: Iterable[str] = (), overwrite: bool = False
) -> list[str]:
    """Return the files that a new folder replaces, as :func:`owned` does.

    Parameters
    ----------
    target, marker, earlier
        As in :func:`owned`.
    what : str
        What the folder is, such as "a partition directory".
    holds : iterable of str
        What the new folder is going to hold, in the words of :func:`held`.
    overwrite : bool
        Whether an old folder that holds more is replaced, too.

    Raises
    ------
    FileExistsError
        The target is not ``what``, and not empty. Or it holds what the new one lacks.
    ParameterError
        It holds more than fastpart has written there.
    """
    files = owned(target, marker, earlier)
    if not files and target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise FileExistsError(
            errno.EEXIST,
            f"exists and is not {what} (no {marker} of fastpart in it). Choose another name",
            str(target),
        )
    _core.refuse_foreign(target, files)
    new = set(holds)
    lost = [each for each in held(content_of(target / marker)) if each not in new] if files else []
    if lost and not overwrite:
        raise FileExistsError(
            errno.EEXIST,
            f"holds {', '.join(lost)}, and the new one would not. Give them, too, or choose another name. "
            "overwrite=True replaces it all the same",
            str(target),
        )
    return files


def held(content: Mapping[str, Any], kinds: Collection[str] = KINDS) -> list[str]:
    """Return what a folder holds, in words: as its marker lists it, or by the entries of these kinds."""
    if isinstance(listed := content.get("holds"), list):
        return [str(each) for each in listed]
    words = {entry: name for entry, name in KINDS.items() if entry in kinds}
    found = [name for entry, name in words.items() if content.get(entry)]
    for of in ("types", "relations"):
        entries = content.get(of)
        for each in entries if isinstance(entries, list) else ():
            if isinstance(each, dict):
                found += [f"{name} of {each.get('name')}" for entry, name in words.items() if each.get(entry)]
    return found


@dataclass
class _Lock:
    """A lock that this process holds, and how often: calls for one output may be nested in a thread."""

    name: Path
    file: int
    thread: int
    count: int = 1


_locks: dict[Path, _Lock] = {}
"""The locks of this process, by the file that is locked."""

_guard = threading.Lock()


class Owner:
    """The one process, and the thread of it, that writes an output, until :meth:`release` or the end of a block.

    Where the file system has no locks, or the folder takes no file, a note says that nobody watches.

    Parameters
    ----------
    target : pathlib.Path
        The file or the folder. It need not exist.
    parameter : str
        How the output is called in errors.

    Raises
    ------
    ParameterError
        Another process, or another thread, is at work there. The text names it.
    """

    def __init__(self, target: Path, parameter: str = "out") -> None:
        place = Path(os.path.realpath(target))
        special = place.exists() and not (place.is_file() or place.is_dir())
        self._lock: Path | None = (
            place.with_name(f".{place.name}.lock") if place.name and not special else None
        )
        if self._lock is None:
            return
        with _guard:
            known = _locks.get(self._lock)
            if known is not None and known.thread == threading.get_ident():
                known.count += 1
                return
            try:
                file, holder = _locked(self._lock)
            except (FileNotFoundError, NotADirectoryError):  # what writes the output says so
                file, holder = None, None
            except OSError as error:
                file, holder = None, None
                if target.exists():
                    log.warning(
                        "%s cannot be locked (%s). See to it that no other command writes there meanwhile",
                        shown(target),
                        error.strerror or error,
                    )
            if holder is not None:
                raise ParameterError(
                    f"{parameter}: {shown(target)} is in use. At work there: {holder}. Wait until it has ended, or "
                    "name another"
                )
            if file is None:
                self._lock = None
                return
            _locks[self._lock] = _Lock(self._lock, file, threading.get_ident())

    def release(self) -> None:
        """End the work."""
        with _guard:
            lock = None if self._lock is None else _locks.get(self._lock)
            self._lock = None
            if lock is None:  # a fork has none of them
                return
            lock.count -= 1
            if not lock.count:
                del _locks[lock.name]
                _freed(lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def owning(**targets: Path | None) -> Iterator[None]:
    """Own outputs until the end of the block, by the names of their parameters. None is no output."""
    with ExitStack() as stack:
        for parameter, target in targets.items():
            if target is not None:
                stack.enter_context(Owner(target, parameter))
        yield


def _locked(name: Path) -> tuple[int | None, str | None]:
    """Lock a file, and write there who did. Return it, or else who has locked it."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    while True:
        file = os.open(name, flags, 0o644)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode) or not _is_ours(_text(file)):
                raise OSError(errno.EEXIST, f"{shown(name)} is a file of somebody else")
            if not try_lock(file):
                text = _text(file).removeprefix(_SIGN).strip()
                os.close(file)
                return None, text or "another process"
            if _has_name(file, name):
                os.ftruncate(file, 0)
                os.lseek(file, 0, os.SEEK_SET)
                os.write(file, f"{_SIGN}{_self()}\n".encode())
                return file, None
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # its owner removed it between the two calls


def _is_ours(text: str) -> bool:
    return not text or text.startswith(_SIGN)


def _self() -> str:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()} on {platform.node() or 'this machine'}, since {since}"


def _text(file: int) -> str:
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, 1000).decode(errors="replace")


def _has_name(file: int, name: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(name, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _freed(lock: _Lock) -> None:
    """Remove a lock file and free its lock. Until it is free nobody else begins."""
    in_use = False
    try:
        lock.name.unlink()
    except PermissionError:  # of an open file, where the system forbids that
        in_use = True
    except OSError:
        pass
    os.close(lock.file)
    if in_use:
        with suppress(OSError):
            lock.name.unlink()


def _leave_to_parent() -> None:
    """Close the locks of the parent in a process that it has forked: they end with the parent."""
    global _guard
    _guard = threading.Lock()
    for lock in _locks.values():
        os.close(lock.file)
    _locks.clear()


after_fork(_leave_to_parent)
