"""What tells a file that was read before from another one in its place.

Size and time do not: ``touch -r``, ``cp -p`` and ``rsync -t`` give a new file the time of an old one.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .. import _core

_ENDS = 1 << 16
"""Bytes of the head, and of the tail."""

State = list[int | str]
"""As JSON has it."""


def state_of(file: str | Path, changes: bool = False) -> State:
    """Return what differs if another file lies there now: size, time, inode, and a hash of head and tail.

    ``changes`` adds the time of the last change, which nobody can set back. It differs after a link to the file, too.
    """
    found = os.stat(file)
    state: State = [found.st_size, found.st_mtime_ns, found.st_ino, ends_of(file)]
    return [*state, found.st_ctime_ns] if changes else state


def ends_of(file: str | Path) -> str:
    """Return a hash of size, head and tail of a file. Copies have the same. That of a small file is of all bytes."""
    found = os.stat(file)
    if not stat.S_ISREG(found.st_mode):
        return ""  # opening a pipe may never end
    with open(file, "rb", buffering=0) as opened:
        head = opened.read(_ENDS)
        opened.seek(max(found.st_size - _ENDS, len(head)))
        tail = opened.read(_ENDS)
    return _core.hash_bytes(b"%d " % found.st_size + head + tail)
