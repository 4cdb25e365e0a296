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
from io import FileIO
from pathlib import Path
from typing import Any, Self

from .. import _core
from ..errors import ParameterError, arg, refusal
from .folders import content_of, owned
from .notes import log
from .parameters import shown
from .system import THIS_FILE, after_fork, try_lock

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
    "edge_labels": "labels of edges",
    "edge_label_splits": "splits of labelled edges",
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
        The target is not ``what``, and not empty, or it is a link that leads nowhere. Or it holds what the new one
        lacks.
    ParameterError
        It holds more than fastpart has written there.
    """
    if target.is_symlink() and not target.exists():
        raise FileExistsError(
            errno.EEXIST, "is a link that leads nowhere. Remove it, or choose another name", str(target)
        )
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
        raise refusal(
            FileExistsError,
            errno.EEXIST,
            f"holds {', '.join(lost)}, which would be lost. Give the new one the same, choose another name, or pass "
            f"{arg('overwrite', True)}",
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
    """A lock that this process holds, and who holds it here: calls for one output may be nested in a thread."""

    name: Path
    file: FileIO
    thread: int
    owners: set[int]


_locks: dict[Path, _Lock] = {}
"""The locks of this process, by the file that is locked."""

_entrusted: set[Path | None] = set()
"""The files of the locks that another process holds for this one."""

_guard = threading.RLock()  # Python may collect an owner while it makes another one


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

    _name: Path | None = None  # also of one whose target cannot be found

    def __init__(self, target: Path, parameter: str = "out") -> None:
        self._name = _lock_of(target)
        if self._name is None or self._name in _entrusted:
            return
        try:
            with _guard:
                self._take(self._name, target, parameter)
        except BaseException:
            self.release()
            raise

    def _take(self, name: Path, target: Path, parameter: str) -> None:
        known = _locks.get(name)
        if known is not None and known.thread == threading.get_ident():
            known.owners.add(id(self))
            return
        try:
            locked = _locked(name)
        except (FileNotFoundError, NotADirectoryError):  # what writes the output says so
            return
        except OSError as error:
            if target.exists() or os.path.lexists(name):
                log.warning(
                    "%s cannot be locked (%s). See to it that no other command writes there meanwhile",
                    shown(target),
                    error.strerror or error,
                )
            return
        if isinstance(locked, str):
            raise ParameterError(
                f"{parameter}: {shown(target)} is in use. At work there: {locked}. Wait until it has ended, or name "
                "another"
            )
        _locks[name] = _Lock(name, locked, threading.get_ident(), {id(self)})

    def release(self) -> None:
        """End the work. A second time does nothing."""
        try:
            self._release()
        except BaseException:  # Ctrl-C in its middle
            self._release()
            raise

    def _release(self) -> None:
        with _guard:
            lock = None if self._name is None else _locks.get(self._name)
            if lock is None or id(self) not in lock.owners:  # a fork has none
                return
            if len(lock.owners) == 1:
                _freed(lock)
                _locks.pop(lock.name, None)
            lock.owners.discard(id(self))

    __del__ = release
    """Ctrl-C may come where no block has begun yet, or none ends."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@contextmanager
def new_folder(target: Path, owned: Iterable[str] = ()) -> Iterator[Path]:
    """Yield a folder under a temporary name, which takes the place of ``target`` in the end, unless an error is raised.

    ``owned`` are the files of ``target`` that go with it.
    """
    folder = _core.AtomicDir(target, [Path(name) for name in owned])
    try:
        yield Path(folder.path)
        folder.commit()
    finally:
        folder.discard()


@contextmanager
def output_folder(
    target: Path, marker: str, what: str, holds: Iterable[str], overwrite: bool, earlier: str = ""
) -> Iterator[Path]:
    """Own an output until the end of the block, and yield the :func:`new_folder` for it.

    The other parameters are those of :func:`replaceable`.
    """
    with (
        Owner(target),
        new_folder(target, replaceable(target, marker, earlier, what, holds, overwrite)) as inside,
    ):
        yield inside


@contextmanager
def folder_beside(target: Path) -> Iterator[Path]:
    """Yield a temporary folder on the file system of the target. It is always removed."""
    folder = _core.AtomicDir(target.with_name(f"{target.name}.staged"))
    try:
        yield Path(folder.path)
    finally:
        folder.discard()


@contextmanager
def entrusted(target: Path) -> Iterator[None]:
    """Work for the owner of an output, which is another process, until the end of the block."""
    name = _lock_of(target)
    if name is not None:
        _entrusted.add(name)
    try:
        yield
    finally:
        _entrusted.discard(name)


@contextmanager
def owning(**targets: Path | None) -> Iterator[None]:
    """Own outputs until the end of the block, by the names of their parameters. None is no output."""
    with ExitStack() as stack:
        for parameter, target in targets.items():
            if target is not None:
                stack.enter_context(Owner(target, parameter))
        yield


def _lock_of(target: Path) -> Path | None:
    """Return the file whose lock is that of an output. A device or a pipe has none."""
    place = Path(os.path.realpath(target))
    special = place.exists() and not (place.is_file() or place.is_dir())
    return None if special or not place.name else place.with_name(f".{place.name}.lock")


def _locked(name: Path) -> FileIO | str:
    """Lock a file, and write there who did. Return it, or else who has locked it."""
    while True:
        file = FileIO(name, "r+", opener=_opener)
        try:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode) or not _is_ours(_text(file)):
                raise OSError(errno.EEXIST, f"{shown(name)} is a file of somebody else")
            if not try_lock(file.fileno()):
                holder = _text(file).removeprefix(_SIGN).strip()
                file.close()
                return holder or "another process"
            if _has_name(file, name):
                file.truncate(0)
                file.seek(0)
                file.write(f"{_SIGN}{_self()}\n".encode())
                return file
        except BaseException:
            file.close()
            raise
        file.close()  # its owner removed it between the two calls


def _opener(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_CREAT | THIS_FILE, 0o644)


def _is_ours(text: str) -> bool:
    return not text or text.startswith(_SIGN)


def _self() -> str:
    since = time.strftime("%Y-%m-%d %H:%M:%S")
    return f"process {os.getpid()} on {platform.node() or 'this machine'}, since {since}"


def _text(file: FileIO) -> str:
    file.seek(0)
    return (file.read(1000) or b"").decode(errors="replace")


def _has_name(file: FileIO, name: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(name, follow_symlinks=False))
    except FileNotFoundError:
        return False


def _freed(lock: _Lock) -> None:
    """Remove a lock file and free its lock. Until it is free nobody else begins."""
    if lock.file.closed:
        return
    in_use = False
    try:
        if _has_name(lock.file, lock.name):
            lock.name.unlink()
    except PermissionError:  # of an open file, where the system forbids that
        in_use = True
    except OSError:
        pass
    lock.file.close()
    if in_use:
        with suppress(OSError):
            lock.name.unlink()


def _leave_to_parent() -> None:
    """Close the locks of the parent in a process that it has forked: they end with the parent."""
    global _guard
    _guard = threading.RLock()
    for lock in _locks.values():
        lock.file.close()
    _locks.clear()


after_fork(_leave_to_parent)
