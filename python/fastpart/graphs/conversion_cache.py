"""Conversions of files that hold no raw records, kept for the next time in the cache folder of the user.

An entry is a folder with what the conversion wrote and ``entry.json``, which lists it with checksums. Its name is a
hash of the paths and states of the sources, of the options that change the result, and of the version of fastpart.

Finding an entry compares the checksums of all files but the records and their weights, which may be large. Whatever
reads all of these takes their checksum anyway, and compares it then.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import _core
from ..core.folders import below, refuse_links
from ..core.notes import log
from ..core.options import RunOptions
from ..core.outputs import new_folder
from ..core.parameters import regular, shown, sized
from ..core.parsing import is_intact, json_object, with_checksum
from ..core.system import THIS_FILE, try_lock
from ..errors import FastpartError

MARKER = "entry.json"

_UNWRITABLE = {
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.ENOTDIR,
    errno.EEXIST,
    errno.ENAMETOOLONG,
    errno.EFBIG,
}
"""Errors of the system for which the conversion goes to a temporary folder."""

_UNREACHABLE = {errno.ENOENT, errno.EIO, errno.ESTALE, errno.ELOOP}
"""More of them, if it is the folder of the cache that has them. The source may have them, too."""

_SIZES: ContextVar[list[int] | None] = ContextVar("fastpart.conversions", default=None)
"""The bytes of conversions that are not to be kept. None: they are kept."""


@dataclass(frozen=True)
class Stored:
    """A conversion. ``keep`` is the temporary folder that holds it, if it is not in the cache.

    ``found``: it was made by an earlier opening.
    """

    folder: Path
    keep: object = None
    found: bool = False

    @property
    def remedy(self) -> str | None:
        """What helps where the records are damaged, if they are not those of a moment ago."""
        if self.keep is not None:
            return None
        return f"The conversion is damaged. Delete {shown(self.folder)} and open the graph again"


@dataclass(frozen=True)
class Entry:
    """What the cache holds of one source."""

    folder: Path
    sources: list[str]
    bytes: int


def home() -> Path:
    """Return the folder of the cache, which need not exist."""
    given = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(given) if os.path.isabs(given) else Path("~/.cache").expanduser()) / "fastpart"


def conversion(
    key: Mapping[str, Any],
    name: str,
    make: Callable[[Path], None],
    options: RunOptions,
    compared_later: Collection[str] = (),
    damaged: bool = False,
) -> Stored:
    """Return the conversion with this key. If there is none, ``make`` writes it to a folder.

    Parameters
    ----------
    key : mapping
        What the result depends on. Its ``files`` begin with their paths.
    name : str
        How notes call the source.
    make : callable
        It may be called twice, the second time where the cache could not be written.
    options : RunOptions
        ``tmp_dir`` is where a conversion goes for which the cache has no place.
    compared_later : collection of str
        Names of files whose content is compared when it is read.
    damaged : bool
        The reader found that it is damaged.
    """
    sizes = _SIZES.get()
    try:
        entry = home() / "conversions" / _digest(key)
        if not damaged and _valid(entry, key, options):
            log.info("%s: read from its conversion in %s", name, shown(entry))
            return Stored(entry, found=True)
        if sizes is None:
            return _kept(entry, key, name, make, options, compared_later)
    except (OSError, RuntimeError) as error:  # RuntimeError: there is no home
        if isinstance(error, FastpartError) or not _unwritable(error):
            raise
        log.info("%s: the cache cannot be written (%s). The conversion is not kept", name, str(error))
    stored = temporary(make, options)
    if sizes is not None:
        sizes.append(_bytes(stored.folder))
    return stored


def _kept(
    entry: Path,
    key: Mapping[str, Any],
    name: str,
    make: Callable[[Path], None],
    options: RunOptions,
    compared_later: Collection[str],
) -> Stored:
    """Make a conversion in the cache."""
    if os.path.lexists(entry):
        log.info("%s: its conversion in %s is damaged. It is made again", name, shown(entry))
        (entry / MARKER).unlink(missing_ok=True)
    _write(entry, key, make, options, compared_later)
    log.info(
        "%s: converted once, to %s in %s. `fastpart conversions` lists them, --clear removes them",
        name,
        sized(_bytes(entry)),
        shown(entry),
    )
    return Stored(entry)


@contextmanager
def unkept() -> Iterator[list[int]]:
    """Keep no conversion that is made in the block. Yield a list that gets the bytes of each."""
    sizes: list[int] = []
    token = _SIZES.set(sizes)
    try:
        yield sizes
    finally:
        _SIZES.reset(token)


def temporary(make: Callable[[Path], None], options: RunOptions) -> Stored:
    """Write a conversion to a temporary folder."""
    import tempfile  # here, because its import is slow

    folder = Path(tempfile.mkdtemp(prefix="fastpart-", dir=options.tmp_dir))
    keep = _Temporary(folder)
    make(folder)
    return Stored(folder, keep)


class _Temporary:
    """A folder that is removed with this object, by the process that made it."""

    def __init__(self, folder: Path) -> None:
        weakref.finalize(self, _remove, folder, os.getpid())


def _remove(folder: Path, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _unwritable(error: Exception) -> bool:
    if not isinstance(error, OSError) or error.errno in _UNWRITABLE:
        return True
    if error.errno not in _UNREACHABLE or error.filename is None:
        return False
    where = Path(os.fsdecode(error.filename))
    return where.is_relative_to(home()) or home().is_relative_to(where)


def _digest(key: Mapping[str, Any]) -> str:
    return _core.hash_bytes(json.dumps(key, sort_keys=True).encode())


def _valid(entry: Path, key: Mapping[str, Any], options: RunOptions) -> bool:
    """Return whether an entry is as it was written. Of some files only the size is compared."""
    content = _read(entry)
    if content is None or content.get("key") != json.loads(json.dumps(key)):
        return False
    try:
        if any((entry / name).stat().st_size != size for name, (size, _) in content["files"].items()):
            return False
        listed = {entry / name: xxh3 for name, (_, xxh3) in content["files"].items() if xxh3}
        found = _core.hash_files(list(listed), options)
        return [xxh3 for _, xxh3 in found] == [*listed.values()]
    except (OSError, AttributeError, TypeError, KeyError, ValueError):
        return False


def _read(entry: Path) -> dict[str, Any] | None:
    marker = entry / MARKER
    try:
        text = regular(marker).read_bytes()
        content = json_object(marker, text)
    except (OSError, FastpartError):
        return None
    return content if is_intact(text) else None


def _write(
    entry: Path,
    key: Mapping[str, Any],
    make: Callable[[Path], None],
    options: RunOptions,
    compared_later: Collection[str],
) -> None:
    """Write an entry in one step. Another process may do the same: the first one stays."""
    entry.parent.parent.parent.mkdir(parents=True, exist_ok=True)
    for folder in (entry.parent.parent, entry.parent):
        folder.mkdir(mode=0o700, exist_ok=True)  # the source may be readable by its owner only
    refuse_links(entry.parent, [entry.name])
    complete = False
    try:
        with new_folder(entry, below(entry)) as inside:
            make(inside)
            names = below(inside)
            sizes = {name: (inside / name).stat().st_size for name in names}
            now = [name for name in names if Path(name).name not in compared_later]
            hashes = dict(zip(now, _core.hash_files([inside / name for name in now], options), strict=True))
            files = {name: [size, hashes[name][1] if name in hashes else ""] for name, size in sizes.items()}
            content = json.dumps({"fastpart": 1, "key": key, "files": files}, indent=1) + "\n"
            _core.write_file(inside / MARKER, with_checksum(content.encode()))
            complete = True
    except (OSError, FastpartError):
        if not (complete and _valid(entry, key, options)):
            raise


def entries() -> Iterator[Entry]:
    """Yield what the cache holds."""
    for folder in _folders():
        content = _read(folder) or {}
        files = content.get("key", {}).get("files", []) if isinstance(content.get("key"), dict) else []
        names = [str(file[0]) for file in files if isinstance(file, list) and file]
        yield Entry(folder, names, _bytes(folder))


def clear() -> tuple[int, int]:
    """Remove all entries. Return their number, and how many bytes they took. What cannot be removed stays, with a note.

    Of a link only the link is removed.
    """
    removed = []
    for entry in entries():
        try:
            entry.folder.unlink() if entry.folder.is_symlink() else shutil.rmtree(entry.folder)
        except OSError as error:
            log.info("%s: not removed (%s)", shown(entry.folder), error.strerror)
        else:
            removed.append(entry)
    with suppress(OSError):
        for left in (home() / "conversions").glob(".*.tmp-*"):
            with suppress(OSError):
                _remove_dead(left)
    return len(removed), sum(entry.bytes for entry in removed)


def _folders() -> list[Path]:
    """Return the folders of the entries. Their names are hashes."""
    try:
        found = [each for each in (home() / "conversions").iterdir() if each.is_dir()]
    except (FileNotFoundError, NotADirectoryError, RuntimeError):
        return []
    return sorted(
        each for each in found if len(each.name) == 32 and set(each.name) <= set("0123456789abcdef")
    )


def _bytes(folder: Path) -> int:
    total = 0
    for name in below(folder) if not folder.is_symlink() else ():
        with suppress(OSError):
            total += (folder / name).stat().st_size
    return total


def _remove_dead(left: Path) -> None:
    """Remove what a killed process has left. A living one holds a lock on it."""
    handle = os.open(left, os.O_RDONLY | THIS_FILE)
    try:
        # rmtree would wait for the other end of a pipe
        if stat.S_ISDIR(os.fstat(handle).st_mode) and try_lock(handle):
            shutil.rmtree(left)
    finally:
        os.close(handle)
