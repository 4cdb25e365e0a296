"""What a reader returned, said, and left alone: so that a change is noticed, harmless, or a defect."""

import hashlib
import logging
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

import numpy as np
from changes import MOVED


def digest(value: Any) -> str:
    """Return a hash of arrays, frames, text, lists of these, or of all files below a folder."""
    found = hashlib.blake2b(digest_size=16)
    _add(found, value)
    return found.hexdigest()


def _add(found: Any, value: Any) -> None:
    if isinstance(value, list | tuple):
        for each in value:
            _add(found, each)
    elif isinstance(value, Path):
        for at, folders, names in os.walk(value, followlinks=True):
            folders[:] = sorted(name for name in folders if not name.endswith(MOVED))
            for file in sorted(Path(at, name) for name in names if not name.endswith(MOVED)):
                found.update(os.fsencode(file.relative_to(value)) + file.read_bytes())
    elif hasattr(value, "write_csv"):
        found.update(value.write_csv().encode())
    elif isinstance(value, str | int | float | bool):
        found.update(repr(value).encode())
    else:
        array = np.ascontiguousarray(value)
        found.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())


class Noted(logging.Handler):
    """Gathers the notes and warnings of a block."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.said: set[str] = set()
        self._log = logging.getLogger("fastpart")

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a note."""
        self.said.add(record.getMessage())

    def __enter__(self) -> Self:
        self._level = self._log.level
        self._log.setLevel(logging.INFO)
        self._log.addHandler(self)
        self._caught = warnings.catch_warnings(record=True)
        self._warned = self._caught.__enter__()
        warnings.simplefilter("always")
        return self

    def __exit__(self, *raised: Any) -> None:
        self._caught.__exit__(*raised)
        self.said |= {str(each.message) for each in self._warned}
        self._log.removeHandler(self)
        self._log.setLevel(self._level)


class State:
    """The files and folders below some folders, as they are now: names, sizes, times, kinds."""

    def __init__(self, folders: Iterable[Path]) -> None:
        self._known = {}
        for folder in folders:
            for at, names, files in os.walk(folder):
                for name in (*names, *files):
                    found = os.lstat(path := os.path.join(at, name))
                    of_file = (found.st_size, found.st_mtime_ns) if name in files else ()
                    self._known[path] = (found.st_mode, found.st_ino, *of_file)

    def changed(self, later: "State") -> list[str]:
        """Return what is new, gone or another one."""
        before, after = self._known, later._known
        return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
