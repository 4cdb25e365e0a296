"""The one rule about folders: fastpart replaces and removes the files that it has listed itself, and nothing else.

A folder that fastpart writes has a marker, a JSON file whose ``files`` lists what else was written, by its path below
the folder. Folders of versions that kept no list own the names that those versions wrote.

A folder in which fastpart works is an :class:`OwnFolder`. There the list is that of all names that its work may need.

No link is followed below such a folder: what is written through a link would take the place of somebody else's file.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..errors import GraphFormatError
from .notes import log
from .parameters import StrPath, shown
from .parsing import PathBelow, conform, json_object

_TEMPORARY = re.compile(r"(^|/)\.([^/]+?)\.tmp-[\d.]+(?=/|$)")
"""The name under which a file or a folder is written before it gets its own. A kill leaves it."""

_OF_THE_SYSTEM = re.compile(r"(.*/)?\.nfs[0-9a-f]+")
"""What NFS makes of a file that is removed while a process has it open."""

_NAMED = 3
"""Files that a refusal names, at most."""


def owned(folder: Path, marker: str, earlier: str) -> list[str]:
    """Return the files of a folder that may be replaced. None of a folder whose marker is not fastpart's.

    Parameters
    ----------
    folder : pathlib.Path
        A folder, or what does not exist.
    marker : str
        Name of the JSON file with the list.
    earlier : str
        Regular expression of the files, by their paths below the folder, of versions that kept no list.
    """
    content = content_of(folder / marker)
    if not content:
        return []
    if "files" not in content:
        return [marker, *(name for name in below(folder) if re.fullmatch(earlier, name))]
    try:
        conform(content, {"files": list[PathBelow] | dict[PathBelow, Any]})
    except ValueError:
        return []
    return [marker, *content["files"]]


def content_of(marker: Path) -> dict[str, Any]:
    """Return what a marker says. Nothing if it is none of fastpart."""
    if not marker.is_file():  # reading a pipe or a device may never end
        return {}
    try:
        content = json_object(marker)
    except (OSError, GraphFormatError):
        return {}
    return content if "fastpart" in content else {}


def below(folder: Path) -> list[str]:
    """Return the files below a folder by their paths there, in order. Links are not followed."""
    return sorted(
        Path(os.path.relpath(os.path.join(at, name), folder)).as_posix()
        for at, _, names in os.walk(folder)
        for name in names
    )


def leads_out(path: str | Path, folder: str | Path) -> bool:
    """Whether a path below a folder leads out of it, by its name or a link. The folder itself may be a link."""
    return not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def within(folder: Path, name: str, what: str) -> Path:
    """Return the path of a name in a folder, to read or write there. Refuse one that leads out of the folder.

    ``what`` says what the folder is, such as "partition directory".
    """
    file = folder / name
    try:
        out = leads_out(file, folder)
    except ValueError:  # no system has files of such names
        out = True
    if out:
        raise GraphFormatError(f"{shown(file)}: leads out of the {what}")
    return file


def inside(folder: Path, name: str, what: str = "partition directory") -> Path:
    """Return a file of a folder. Refuse a path that leads out of it, and what is missing or no regular file."""
    file = within(folder, name, what)
    try:
        found = os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        raise GraphFormatError(f"{shown(file)} is missing. The {what} is incomplete") from None
    except OSError as error:
        raise GraphFormatError(f"{shown(file)}: {error.strerror}") from None
    if not stat.S_ISREG(found.st_mode):
        raise GraphFormatError(f"{shown(file)}: not a regular file")
    return file


def links(folder: Path) -> list[str]:
    """Return the links below a folder by their paths there, in order."""
    return sorted(name for name, entry in _entries(folder) if entry.is_symlink())


def refuse_links(folder: Path, names: Iterable[StrPath]) -> None:
    """Refuse files of a folder, by their paths below it, that are links or lie behind a link. Absent files are fine.

    The folder itself may be a link: its user has named it.

    Raises
    ------
    FileExistsError
        There is a link. It names its path.
    """
    checked = {folder}
    for name in names:
        at = folder
        for part in Path(os.fsdecode(name)).parts:
            at = at / part
            if at not in checked and at.is_symlink():
                raise FileExistsError(
                    errno.EEXIST,
                    "is a link, and fastpart makes none there. Put what it leads to in its place, or remove it",
                    str(at),
                )
            checked.add(at)


def make(folder: Path, instead: str, mode: int = 0o777) -> bool:
    """Make a folder in which fastpart works, unless it is there. Return whether it is new.

    Parameters
    ----------
    folder : pathlib.Path
        Its parent exists.
    instead : str
        What a user can do if somebody else has the name, as "choose another name for the output".
    mode : int
        Its permissions.

    Raises
    ------
    FileExistsError
        A link or a file has its name.
    """
    try:
        folder.mkdir(mode)
    except FileExistsError:
        if folder.is_symlink() or not folder.is_dir():
            kind = "a link" if folder.is_symlink() else "no folder"
            raise FileExistsError(
                errno.EEXIST,
                f"is {kind}. fastpart works in a folder of this name. Move it away, or {instead}",
                str(folder),
            ) from None
        return False
    return True


class OwnFolder:
    """A folder in which fastpart works, and from which the next run goes on after a kill.

    It is made here, and a link in its place is refused. A folder that is there is fastpart's if it has the marker and
    nothing but what fastpart writes there. Any other is refused and stays as it is. The marker is the first file in it
    and the last. Its owner is one process at a time, see :class:`fastpart.core.outputs.Owner`.

    Parameters
    ----------
    path : pathlib.Path
        The folder.
    marker : str
        Name of the file that makes it fastpart's.
    files : str
        Regular expression of all other files, by their paths below the folder.
    instead : str
        What a user can do if somebody else has the name, as "choose another name for the output".

    Attributes
    ----------
    path : pathlib.Path
        The folder.
    marker : pathlib.Path
        The file that makes it fastpart's. The caller writes it before any other.

    Raises
    ------
    FileExistsError
        Somebody else's link, file or folder has the name, or somebody else's file, a link, a pipe or a device lies in
        the folder.
    """

    def __init__(self, path: Path, marker: str, files: str, instead: str) -> None:
        self.path, self.marker = path, path / marker
        self._files = re.compile(files)
        if not make(path, instead):
            self._refuse_foreign(instead)

    def _refuse_foreign(self, instead: str) -> None:
        if not self.marker.is_file() and not all(map(self._is_own, os.listdir(self.path))):
            raise FileExistsError(
                errno.EEXIST,
                f"is a folder of somebody else (no {self.marker.name} of fastpart in it). fastpart works in a folder "
                f"of this name. Move it away, or {instead}",
                str(self.path),
            )
        # A link would lead to somebody else's file, and a pipe would never end.
        foreign = [
            name
            for name, entry in _entries(self.path)
            if not entry.is_file(follow_symlinks=False) or not self._is_own(name, True)
        ]
        if foreign:
            more = [f"{len(foreign) - _NAMED} more"] if len(foreign) > _NAMED else []
            named = ", ".join([*(str(shown(name)) for name in sorted(foreign)[:_NAMED]), *more])
            raise FileExistsError(
                errno.EEXIST,
                f"holds what fastpart did not write there: {named}. Move it away, or {instead}",
                str(self.path),
            )

    def _is_own(self, name: str, marked: bool = False) -> bool:
        """Whether fastpart writes a file of this name there. Without a marker there is only what a marker begins as."""
        own = _final(name)
        if own == self.marker.name:
            return marked or own != name
        return _OF_THE_SYSTEM.fullmatch(name) is not None or (
            marked and self._files.fullmatch(own) is not None
        )

    def clear(self) -> None:
        """Remove all files, the marker last, and folders that are empty then. Files of somebody else stay."""
        _clear(self.path, lambda name: name != self.marker.name and self._is_own(name, True))
        self.marker.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the folder with all files. A note says if something of somebody else keeps it."""
        try:
            self.clear()
            self.path.rmdir()
        except OSError as error:
            log.warning(
                "%s is no longer needed, but cannot be removed: %s", shown(self.path), error.strerror or error
            )


def remove_files(folder: Path, files: str) -> None:
    """Remove the files of a folder whose paths below it match, and the folder if it is empty then. A link stays.

    What cannot be removed stays, too.
    """
    if folder.is_symlink():
        return
    names = re.compile(files)
    with suppress(OSError):
        _clear(folder, lambda name: names.fullmatch(_final(name)) is not None)
        folder.rmdir()


def _clear(folder: Path, is_own: Callable[[str], bool]) -> None:
    """Remove files, and folders that are empty then. A link is removed, not followed."""
    for name, _ in list(_entries(folder)):
        if is_own(name):
            (folder / name).unlink(missing_ok=True)
    for at, folders, _ in os.walk(folder, topdown=False):
        for name in folders:
            with suppress(OSError):  # it is a link, or something is in it
                os.rmdir(os.path.join(at, name))


def _final(name: str) -> str:
    """Return the path that a file gets which is still under the name of a temporary one."""
    return _TEMPORARY.sub(r"\1\2", name)


def _entries(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield all entries below a folder except folders, with their paths there. No link is followed."""
    pending = [""]
    while pending:
        within = pending.pop()
        with (
            suppress(FileNotFoundError),
            os.scandir(folder / within) as entries,
        ):  # another process may remove files
            for entry in entries:
                name = f"{within}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    pending.append(f"{name}/")
                else:
                    yield name, entry
