"""The one rule about folders: fastpart replaces and removes the files that it has listed itself, and nothing else.

A folder that fastpart writes has a marker, a JSON file whose ``files`` lists what else was written, by its path below
the folder. Folders of versions that kept no list own the names that those versions wrote.
"""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path

from .. import _core


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
    if not (folder / marker).is_file():  # reading a pipe or a device may never end
        return []
    try:
        content = json.loads((folder / marker).read_bytes())
    except (OSError, ValueError, RecursionError):
        return []
    if not isinstance(content, dict) or "fastpart" not in content:
        return []
    if "files" not in content:
        return [marker, *(name for name in below(folder) if re.fullmatch(earlier, name))]
    files = content["files"]
    known = isinstance(files, dict | list) and all(isinstance(name, str) for name in files)
    return [marker, *files] if known else []


def replaceable(target: Path, marker: str, earlier: str, what: str) -> list[str]:
    """Return the files that a new folder replaces, as :func:`owned` does. Refuse a target that holds anything else.

    Raises
    ------
    FileExistsError
        The target is not ``what`` (such as "a partition directory"), and not empty.
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
    return files


def below(folder: Path) -> list[str]:
    """Return the files below a folder by their paths there, in order. Links are not followed."""
    return sorted(
        Path(os.path.relpath(os.path.join(at, name), folder)).as_posix()
        for at, _, names in os.walk(folder)
        for name in names
    )
