"""The one rule about folders: fastpart replaces and removes the files that it has listed itself, and nothing else.

A folder that fastpart writes has a marker, a JSON file whose ``files`` lists what else was written, by its path below
the folder. Folders of versions that kept no list own the names that those versions wrote.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from ..errors import GraphFormatError
from .names import PathBelow
from .parameters import shown
from .parsing import conform, json_object


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
