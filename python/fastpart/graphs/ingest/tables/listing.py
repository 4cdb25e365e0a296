"""The files that a table of a schema names: paths, globs, folders, URLs, and lists of them."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ....core.file_states import state_of
from ....core.folders import leads_out
from ....core.parameters import path as checked_path
from ....core.parameters import regular, shown
from ....errors import GraphFormatError
from . import cloud
from .paths import MAGIC, URL, Found, hidden


def find(name: str, files: Any, root: str) -> list[Found]:
    """Return the files of the table ``name``, sorted by the bytes of their paths, each once.

    Raises
    ------
    FileNotFoundError
        A path, a glob or a folder without a file.
    GraphFormatError
        A link that leads out of the folder of a table, or of the folder where a glob begins.
    """
    patterns = _patterns(name, files)
    if not patterns:
        raise GraphFormatError(f"{name}.files: the list is empty. Name a file, or leave `files` out")
    found = {each.path: each for pattern in patterns for each in _matches(name, joined(root, pattern))}
    return [found[path] for path in sorted(found, key=os.fsencode)]


def joined(root: str, path: str) -> str:
    """Return a path, which begins at ``root`` unless it is absolute or a URL."""
    path = os.path.expanduser(path.removeprefix("file://"))
    if URL.match(path) or os.path.isabs(path):
        return path
    return (
        f"{root.rstrip('/')}/{path}"
        if URL.match(root)
        else os.path.normpath(os.path.join(root, path)) + ("/" if path.endswith("/") else "")
    )


def _patterns(name: str, files: Any) -> list[str]:
    if isinstance(files, str | bytes | os.PathLike):
        files = [files]
    if not isinstance(files, Iterable):
        raise TypeError(
            f"{name}.files: expected a path, a glob, a folder, a URL, a list of them, or a data frame, "
            f"got {type(files).__name__}"
        )
    # pathlib would make one slash of the two of a URL.
    return [each if isinstance(each, str) and URL.match(each) else _text(name, each) for each in files]


def _text(name: str, value: object) -> str:
    slash = "/" if isinstance(value, str) and value.endswith("/") else ""
    return os.fspath(checked_path(f"{name}.files", value)) + slash


def _matches(name: str, pattern: str) -> list[Found]:
    if URL.match(pattern):
        return cloud.find(name, pattern)
    if os.path.isfile(pattern):
        return [_file(pattern)]
    if os.path.isdir(pattern):
        folder = pattern.rstrip("/") or "/"
        return _folder(name, folder, folder)
    regular(Path(pattern))
    if not (magic := MAGIC.search(pattern)):
        raise FileNotFoundError(2, f"{name}.files: no such file or folder", pattern)
    found: list[Found] = []
    root = os.path.dirname(pattern[: magic.start()]) or "."
    for path in glob.glob(pattern, recursive=True):
        _refuse_outside(name, path, root)
        if not os.path.isdir(path):
            found.append(_file(path))
        elif not pattern.endswith("**"):  # which matches the folders and all that is in them
            found += _folder(name, path, root)
    if not found:
        raise FileNotFoundError(2, f"{name}.files: no file matches the glob", pattern)
    return found


def _folder(name: str, folder: str, root: str) -> list[Found]:
    """Return the files below a folder, without those that other systems hide from readers. Links stay in the root."""
    if kind := table_kind(folder, (entry.name for entry in os.scandir(folder))):
        return [Found(folder, 0, "", kind)]
    found: list[Found] = []
    seen: set[str] = set()
    for here, folders, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(here)
        folders[:] = [] if real in seen else [each for each in folders if not hidden(each)]
        if real in seen:  # by a link
            continue
        seen.add(real)
        paths = [os.path.join(here, each) for each in files if not hidden(each)]
        for path in (*paths, *(os.path.join(here, each) for each in folders)):
            if os.path.islink(path):
                _refuse_outside(name, path, root)
        found += map(_file, paths)
    if not found:
        raise FileNotFoundError(2, f"{name}.files: no file in the folder", folder)
    return found


def _refuse_outside(name: str, path: str, root: str) -> None:
    """Refuse a path below a folder that leads out of it: a table is what lies in its folder."""
    if leads_out(path, root):
        raise GraphFormatError(
            f"{name}.files: {shown(path)} leads out of {shown(root)} by a link. Put a copy in its place, or remove the "
            "link and name in `files` what it leads to"
        )


def table_kind(folder: str, names: Iterable[str]) -> str | None:
    """Return "delta" or "iceberg" if a folder with these names is such a table."""
    names = set(names)
    if "_delta_log" in names:
        return "delta"
    if "metadata" in names and any(
        each.name.endswith(".metadata.json") for each in Path(folder, "metadata").glob("*.json")
    ):
        return "iceberg"
    return None


def _file(path: str) -> Found:
    size, *rest = state_of(regular(Path(path)), changes=True)
    return Found(path, int(size), " ".join(map(str, rest)))


def unchanged(found: Found) -> bool:
    """Whether a file is still the one that was found. True for what has no time and no ETag."""
    if found.table is not None or not found.mark:
        return True
    if URL.match(found.path):
        return cloud.current(found) == found
    try:
        return _file(found.path) == found
    except (OSError, GraphFormatError):
        return False
